#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How programs end: runs each of exit_programs and compares what it says and returns.

usage: exit_test.py PROGRAM
"""

import os
import signal
import subprocess
import sys

# name: (exit code, lines on stdout in order, text on stderr)
EXPECTED = {
    "sleepers_are_ended": (0, ["main returns", "~first", "~second", "~third"], ""),
    "suspend_drains": (0, ["slept 1", "slept 2", "slept 3", "main returns"], ""),
    "failure_is_told": (1, [], "nobody awaits me"),
    "failure_is_told_with_its_origin": (1, [], 'in a fiber (fiber "worker", spun at '),
    "locals_of_main": (0, ["~frame", "~of a fiber", "~B", "~A"], ""),
    "exit_with_locals": (6, ["~other's"], ""),
    "forked_locals": (
        0, ["~child's local", "~local", "the child ended with 0", "~local", "~another's"], ""),
    "forked_while_a_body_is_moved": (0, ["~child's", "the child ended with 3"], ""),
    "forked_before_a_body_is_started": (
        0, ["the child's body", "awaited", "the child ended with 3", "the parent's body", "awaited"],
        ""),
    "teleports_while_a_body_is_moved": (
        -signal.SIGABRT, [], "went to another thread while it copied or moved what it spins"),
    "exit_in_fiber": (7, ["~other", "~child"], ""),
    "exit_below_waiting_parent": (5, ["~parent"], ""),
    "exit_while_main_awaits": (6, ["~server"], ""),
    "exit_while_main_copies_a_body": (7, ["~other"], ""),
    "exit_while_main_is_runnable": (6, ["~slow"], ""),
    "exit_in_run": (6, ["~other"], ""),
    "exit_in_main_of_run": (6, ["~other"], ""),
    "foreign_thread": (0, ["~of a thread", "main returns"], ""),
    "after_the_end": (0, ["its fiber has ended", "~a fiber of a static"], ""),
    "deadlock_is_thrown": (3, None, ""),
    "static_thread": (0, ["main returns", "~of a static thread"], ""),
    "exit_on_static_thread": (8, ["~its other fiber"], ""),
    "posted_job_fails": (1, [], "a job that nobody waits for"),
    "stream_destroyed_elsewhere": (
        -signal.SIGABRT, [], "stream: a fiber of another thread is reading from it or writing to it"),
    "thread_fails_unawaited": (1, [], "a thread that nobody awaits"),
    "forked_body_returns": (
        0, ["~child", "~of the child", "the child ended with 0", "~parent", "~other"], ""),
    "overflow": (-11, [], '"deep", spun at '),
    "overflow_in_a_large_frame": (-11, [], "has overflowed its stack"),
    "stacks_run_out": (0, ["many, a clear error"], ""),
    "use_after_end": (-11, [], ""),
    "overflow_is_chained": (9, [], "has overflowed its stack"),
}


def problems(program, name, expectation):
    code, lines, complaint = expectation
    if name.startswith("overflow") and "overflow_report" in os.environ.get("MOTET_DISABLE", ""):
        code, complaint = -11, ""  # nor is there a stack for the program's own handler
    environment = dict(os.environ)
    if name == "stacks_run_out":
        environment["MOTET_DISABLE"] = "guard"
    if name == "use_after_end":
        environment["MOTET_DISABLE"] = environment.get("MOTET_DISABLE", "") + ",stack_reuse"
    if name == "forked_before_a_body_is_started":
        # In the child ThreadSanitizer no longer sees what the forking fiber does before others run.
        environment["TSAN_OPTIONS"] = environment.get("TSAN_OPTIONS", "") + ":report_bugs=0"
    process = subprocess.run(
        [program, name], capture_output=True, text=True, timeout=20, env=environment)
    if process.stdout == "a sanitizer reports it\n":
        return
    if process.returncode != code:
        yield f"{name}: exit code {process.returncode}, not {code}: {process.stderr}"
    if lines is not None and process.stdout.splitlines() != lines:
        yield f"{name}: printed {process.stdout.splitlines()}, not {lines}"
    if complaint not in process.stderr or (not complaint and process.stderr):
        yield f"{name}: complained {process.stderr!r}, not {complaint!r}"
    if name == "deadlock_is_thrown" and "Godot's friend" not in process.stdout:
        yield f"{name}: the report does not name who waits: {process.stdout!r}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    complaints = [line for name in EXPECTED for line in problems(sys.argv[1], name, EXPECTED[name])]
    print(*complaints, sep="\n")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
