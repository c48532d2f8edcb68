#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A hung process tells what it does: sends hung_programs the dump signal and reads what they write.

usage: dump_signal_test.py PROGRAM
"""

import itertools
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time

# Seconds for what must come; nothing waits this long when it does.
PATIENCE = 300 if os.environ.get("MOTET_TEST_SCALE") == "full" else 30

RUNS_SPINNER = r'motet: thread \d+ runs fiber \d+ "spinner", spun at .*hung_programs.cpp:\d+; ' \
    r'no poll for \d+ ms; it is at'
SPINNERS_PLACE = r"  \S+\(compute_for_ever\+0x[0-9a-f]+\) \[0x[0-9a-f]+\]"
HAS_FIBERS = r"motet: thread \d+ has these fibers:"
DOZER = r'fiber \d+ "dozer" waiting: sleep without end, for \d+ ms; spun at .*'
SLEEPS = r"  .*sleep\(.*"
BUSY = r'fiber \d+ "busy" (running|runnable); spun at .*'
READER = r'fiber \d+ "reader" waiting: read 0, for \d+ ms; spun at .*'
SPINNER = r'fiber \d+ "spinner" waiting: sleep, .*'


class Lines:
    """What a pipe brings, as it comes."""

    def __init__(self, pipe):
        self.coming, self.seen = queue.Queue(), []
        threading.Thread(target=self.pump, args=(pipe,), daemon=True).start()

    def pump(self, pipe):
        for line in pipe:
            self.coming.put(line.rstrip("\n"))
        self.coming.put(None)

    def until(self, *patterns):
        """Waits for a line of each kind, in any order; what came with them is returned."""
        expectations, lines, end = list(patterns), [], time.monotonic() + PATIENCE
        while expectations:
            try:
                line = self.coming.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                raise AssertionError(f"no line like {expectations}, but: " + "\n".join(lines or self.seen))
            lines.append(line)
            pattern = next((candidate for candidate in expectations if re.fullmatch(candidate, line)), None)
            if pattern:
                expectations.remove(pattern)
        self.seen += lines
        return lines

    def rest(self):
        lines = []
        while (line := self.coming.get(timeout=PATIENCE)) is not None:
            lines.append(line)
        self.coming.put(None)
        return lines


class Program:
    def __init__(self, path, name, dump_signal=None):
        environment = {k: v for k, v in os.environ.items() if k != "MOTET_DUMP_SIGNAL"}
        if dump_signal is not None:
            environment["MOTET_DUMP_SIGNAL"] = dump_signal
        self.process = subprocess.Popen(
            [path, name], env=environment, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.out, self.err = Lines(self.process.stdout), Lines(self.process.stderr)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def send(self, number):
        self.process.send_signal(number)

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def ends_with(self, code):
        status = self.process.wait(PATIENCE)
        assert status == code, f"exit code {status}, not {code}: {self.err.rest()}"


def consecutive(lines, *patterns):
    """Whether lines like these stand one behind the other."""
    return any(
        all(re.fullmatch(p, line) for p, line in zip(patterns, lines[start:start + len(patterns)]))
        for start in range(len(lines) - len(patterns) + 1))


def stack_below(lines, pattern):
    """The frames below a line: those of the program may stand below others in a sanitized build."""
    rest = itertools.dropwhile(lambda line: not re.fullmatch(pattern, line), lines)
    next(rest)
    return list(itertools.takewhile(lambda line: line.startswith("  "), rest))


def spinners_place(lines):
    return any(re.fullmatch(SPINNERS_PLACE, line) for line in stack_below(lines, RUNS_SPINNER))


def asks_twice(program, number):
    for _ in range(2):
        program.send(number)
        output = program.err.until(
            RUNS_SPINNER, SPINNERS_PLACE, DOZER, SLEEPS, BUSY, READER, HAS_FIBERS, HAS_FIBERS, HAS_FIBERS)
        assert spinners_place(output), output
        lines = [line for line in output if not line.startswith("  ")]
        assert consecutive(lines, HAS_FIBERS, r"fiber \d+ waiting: suspend_with, .*", DOZER), output
        assert any("sleep(" in line for line in stack_below(output, DOZER)), output
        assert not any(re.fullmatch(SPINNER, line) for line in output), output
        program.say("ping")
        program.out.until("pong")


def every_thread_answers_even_one_that_computes(path):
    with Program(path, "several_threads", "QUIT") as program:
        program.out.until("ready")
        asks_twice(program, signal.SIGQUIT)
        program.say("stop")
        # The request is still there when the computation is over.
        program.err.until(SPINNER)
        program.ends_with(0)


def names_of_signals(path):
    for name, number in (("SIGUSR1", signal.SIGUSR1), ("USR2", signal.SIGUSR2),
                         (str(int(signal.SIGUSR2)), signal.SIGUSR2)):
        with Program(path, "one_thread", name) as program:
            program.out.until("ready")
            program.send(number)
            program.err.until(READER)
            program.say("stop")
            program.ends_with(0)


def none_is_chosen(path):
    for name in (None, ""):
        with Program(path, "one_thread", name) as program:
            program.out.until("ready")
            program.send(signal.SIGUSR1)
            program.ends_with(-signal.SIGUSR1)


def what_cannot_be_chosen(path):
    for name in ("QIUT", "KILL", "STOP", "SEGV", "PIPE", "0", "-3", "33", "99", "3x", "SIG"):
        with Program(path, "refused", name) as program:
            program.out.until(rf'MOTET_DUMP_SIGNAL is "{name}", not a signal .*')
            program.ends_with(0)
    with Program(path, "impossible_option") as program:
        program.out.until("options.dump_signal must be .*")
        program.ends_with(0)


def an_option_chooses_before_the_environment(path):
    with Program(path, "option", "USR1") as program:
        program.out.until("ready")
        program.send(signal.SIGUSR2)
        program.err.until(READER)
        program.send(signal.SIGUSR1)
        program.ends_with(-signal.SIGUSR1)


def without_a_runtime_it_says_so(path):
    with Program(path, "runtime_has_ended", "QUIT") as program:
        program.out.until("ready")
        program.send(signal.SIGQUIT)
        program.err.until("motet: no thread of this process has fibers")
        program.say("end")
        program.out.until("alive")
        program.ends_with(0)


def the_programs_own_handler_is_called_once(path):
    with Program(path, "own_handler", "USR1") as program:
        program.out.until("ready")
        program.send(signal.SIGUSR1)
        output = program.err.until("own handler", RUNS_SPINNER, DOZER, BUSY, READER)
        program.say("stop")
        output += program.err.rest()
        assert sum("own handler" in line for line in output) == 1, output
        program.ends_with(0)


def a_forked_child_answers_for_itself(path):
    with Program(path, "forked_child", "USR1") as program:
        program.out.until("ready")
        output = program.err.until('fiber .* "of the child" waiting: read 0, .*')
        program.say("stop")
        program.out.until("the child ended with 3")
        output += program.err.rest()
        assert not any("of the parent" in line for line in output), output
        program.ends_with(0)


def errno_stays(path):
    with Program(path, "errno_stays", "USR1") as program:
        program.out.until("errno 42")
        program.ends_with(0)


def signals_while_runtimes_begin_and_end(path):
    with Program(path, "comings_and_goings", "USR1") as program:
        program.out.until("done")
        program.ends_with(0)


def signals_that_meet_it_anywhere(path):
    for name in ("flooded_while_spinning", "flooded_while_snoozing", "flooded_while_throwing"):
        with Program(path, name, "USR1") as program:
            program.out.until("done")
            program.ends_with(0)


TESTS = [every_thread_answers_even_one_that_computes, names_of_signals, none_is_chosen,
         what_cannot_be_chosen, an_option_chooses_before_the_environment,
         without_a_runtime_it_says_so, the_programs_own_handler_is_called_once,
         a_forked_child_answers_for_itself, errno_stays, signals_while_runtimes_begin_and_end,
         signals_that_meet_it_anywhere]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    failure = False
    for test in TESTS:
        try:
            test(sys.argv[1])
        except AssertionError as problem:
            print(f"{test.__name__}: {problem}")
            failure = True
    sys.exit(1 if failure else 0)


if __name__ == "__main__":
    main()
