#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gdb shows every fiber's stack, in a process and in its core file. Both were built with -g.

usage: gdb_test.py PROGRAM COMMANDS [INSTALLED-PREFIX]
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

PATIENCE = 300


def gdb(commands, *target):
    words = ["gdb", "-batch", "-nx", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off"]
    for command in commands:
        words += ["-ex", command]
    process = subprocess.run([*words, *target], text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return process.stdout


def expect(matches, pattern, text):
    if not matches:
        sys.exit(f"nothing like {pattern} in:\n{text}")


def has(text, *patterns):
    """Each stands behind the one before."""
    position = 0
    for pattern in patterns:
        matches = re.compile(pattern, re.MULTILINE).search(text, position)
        expect(matches, pattern, text)
        position = matches.end()


def has_not(text, pattern):
    expect(not re.search(pattern, text), f"a text without {pattern}", text)


def between(text, first, last):
    return text.partition(f"{first}\n")[2].partition(f"{last}\n")[0]


def look(fiber, script, *target):
    commands = [f"source {script}"]
    for title, command in {
        "list": "fibers", "parked": f"fiber {fiber['parked']} bt", "all": "fiber apply all bt",
        "fresh": f"fiber {fiber['fresh']} bt", "elsewhere": f"fiber {fiber['elsewhere']} bt",
        "locals": f"fiber {fiber['parked']} info registers rip",
        "wrong": "fiber 99 bt", "usage": "fiber bt", "own": "bt",
    }.items():
        commands += [f"echo <{title}>\\n", command, f"echo </{title}>\\n"]
    # In batch mode an error ends nothing: each command is run.
    text = gdb(commands, *target)
    part = {title: between(text, f"<{title}>", f"</{title}>")
            for title in ("list", "parked", "all", "fresh", "elsewhere", "locals", "wrong", "usage", "own")}

    has(part["list"], rf'^  fiber {fiber["parked"]} "parked" waiting: suspend; '
        r'spun at .*gdb_program.cpp:\d+$')
    has(part["list"], rf'^  fiber {fiber["awaiting"]} waiting: '
        rf'await of fiber {fiber["parked"]} "parked"; spun at')
    has(part["list"], rf'^  fiber {fiber["fresh"]} "fresh" runnable; spun at')
    has(part["list"], rf'^  fiber {fiber["locking"]} waiting: lock of a mutex 0x[0-9a-f]+, '
        rf'held by fiber {fiber["holding"]}; spun at')
    has(part["list"], r"^\* fiber \d+ running, a main fiber$")
    # It polls itself, so its registers are its thread's; the main fiber there is the parked one.
    has(part["list"], rf'^\* fiber {fiber["elsewhere"]} "elsewhere" waiting: suspend; spun at')
    has(part["list"], r'^  fiber \d+ waiting: await of fiber \d+ "elsewhere", a main fiber$')

    has(part["parked"], *[r"^#\d+ .*deep_inside \(depth=.*\d\)"] * 3, "main::|run_body|live")
    has_not(part["parked"], "^#0|in_no_call_of_motets|corrupt stack")
    has(part["elsewhere"], r"^#\d+ .*on_another_thread \(\)")
    has_not(part["elsewhere"], "deep_inside")
    has(part["fresh"], "it has not run yet")
    has(part["locals"], r"rip +0x[0-9a-f]+ .*(park|suspend|deep_inside)")
    has(part["wrong"] + text, r"there is no fiber 99")
    has(text, r"usage: fiber N COMMAND")
    has(part["own"] + part["all"], "in_no_call_of_motets")
    has_not(part["own"], "deep_inside")
    has(part["all"], r'^fiber \d+ waiting: await of fiber \d+ "elsewhere"', r"^#\d+ .*live_elsewhere")
    for title, function in (("parked", "deep_inside"), ("elsewhere", "on_another_thread")):
        has(part["all"], rf'^fiber {fiber[title]} "{title}" waiting', rf"^#\d+ .*{function}")


def started(program, environment):
    """The program, once its other thread sleeps, and the numbers of its fibers."""
    process = subprocess.Popen([program], stdout=subprocess.PIPE, text=True,
                               env=dict(os.environ, **environment))
    numbers = {}
    for line in process.stdout:
        if line == "ready\n":
            break
        name, number = line.split()
        numbers[name] = int(number)
    while not all(state_of(process.pid, task) == "S"
                  for task in os.listdir(f"/proc/{process.pid}/task")):
        pass
    return process, numbers


def in_a_process(look, program, script):
    """Calls look(numbers of fibers, script, words for the debugger)."""
    process, numbers = started(program, {})
    try:
        look(numbers, script, "-p", str(process.pid))
    finally:
        process.kill()
        process.wait()


def in_a_core_file(look, program, script, before_core=()):
    """The same; `before_core` are the debugger's words before the name of a core file."""
    # gdb's own core files, unlike the kernel's, end at a page that cannot be read; mprotect(2) gives
    # such pages mappings of their own, which gdb leaves out.
    process, numbers = started(program, {"MOTET_DISABLE": "guard"})
    with tempfile.TemporaryDirectory() as place:
        core = os.path.join(place, "core")
        try:
            gdb([f"generate-core-file {core}"], "-p", str(process.pid))
        finally:
            process.kill()
            process.wait()
        look(numbers, script, program, *before_core, core)


def without_debugging_information(program, script):
    """As what is installed mostly is: frames have names, and fibers have all."""
    with tempfile.TemporaryDirectory() as place:
        library = os.path.join(os.path.dirname(program), "../runtime/libmotet.so.0")
        stripped = os.path.join(place, "gdb_program")
        subprocess.run(["strip", "--strip-debug", "-o", stripped, program], check=True)
        subprocess.run(["strip", "--strip-debug", "-o", os.path.join(place, "libmotet.so.0"), library], check=True)
        process, fiber = started(stripped, {"LD_LIBRARY_PATH": place})
        try:
            text = gdb([f"source {script}", "info sharedlibrary", "fibers", f"fiber {fiber['parked']} bt"],
                       "-p", str(process.pid))
        finally:
            process.kill()
            process.wait()
        has(text, rf"{place}/libmotet.so.0$", rf'^  fiber {fiber["parked"]} "parked" waiting: suspend; spun at',
            *[r"^#\d+ .*deep_inside"] * 3, "fiber_main")
        has_not(text, r"deep_inside \(depth=")


def beside_an_installed_library(program, installed):
    """gdb finds the commands, and the debugging information in a file of its own, by itself."""
    library, = glob.glob(f"{installed}/lib*/**/libmotet.so.0", recursive=True)
    sections = subprocess.run(["readelf", "-S", library], check=True, capture_output=True, text=True).stdout
    has_not(sections, r"\.debug_info")
    process, fiber = started(program, {"LD_LIBRARY_PATH": os.path.dirname(library)})
    try:
        text = subprocess.run(
            ["gdb", "-batch", "-nx", "-iex", f"set auto-load safe-path {installed}",
             "-iex", f"set auto-load scripts-directory {installed}/share/gdb/auto-load",
             "-iex", "set debuginfod enabled off", "-ex", "fibers", "-ex", f"fiber {fiber['parked']} bt",
             "-p", str(process.pid)],
            text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, capture_output=True).stdout
    finally:
        process.kill()
        process.wait()
    has(text, rf'^  fiber {fiber["parked"]} "parked" waiting: suspend; spun at', r"^#\d+ .*fiber_main .*fiber_end\.cpp:\d+")


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    if len(sys.argv) == 4:
        beside_an_installed_library(sys.argv[1], sys.argv[3])
    without_debugging_information(*sys.argv[1:3])
    in_a_process(look, *sys.argv[1:3])
    in_a_core_file(look, *sys.argv[1:3])


def state_of(process, task):
    with open(f"/proc/{process}/task/{task}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


if __name__ == "__main__":
    main()
