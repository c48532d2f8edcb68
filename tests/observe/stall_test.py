#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fibers that hold their thread are named while they do so, and no others: runs stall_programs.

usage: stall_test.py PROGRAM
"""

import re
import subprocess
import sys

PATIENCE = 50
# LeakSanitizer looks in a forked child for the threads of its parent.
NOT_OURS = re.compile(r"==\d+==Running thread \d+ was not suspended\. False leaks are possible\.")


def told_by(path, name):
    """What a program writes: its output, and its reports with their stacks."""
    done = subprocess.run([path, name], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, f"{name} ended with {done.returncode}: {done.stderr}"
    reports = []
    for line in done.stderr.splitlines():
        if NOT_OURS.fullmatch(line):
            continue
        if line.startswith("  "):
            reports[-1][1].append(line)
        else:
            reports.append((line, []))
    return done.stdout, reports


def times(reports, pattern):
    """The milliseconds of each report, all of which are like the pattern."""
    found = [re.fullmatch(pattern, line) for line, _ in reports]
    assert found and all(found), (pattern, reports)
    return [int(match[1]) for match in found]


def a_fiber_that_computes(path):
    for name, function in (("hog", "computes_for"), ("guarded_hog", "computes_with_guards_for")):
        _, reports = told_by(path, name)
        ms = times(reports, r'motet: fiber \d+ "hog", spun at \S*stall_programs.cpp:\d+, '
                            r"has held thread \d+ for (\d+) ms: it computes, at")
        assert ms[0] >= 50, ms
        assert all(f"({function}+" in "".join(stack) for _, stack in reports), reports


def a_blocking_call(path):
    out, reports = told_by(path, "blocking_read")
    fd = re.match(r"fd (\d+)\n", out)[1]
    ms = times(reports, r'motet: fiber \d+ "reader", spun at \S*stall_programs.cpp:\d+, '
                        rf"has held thread \d+ for (\d+) ms: it is blocked in read\(fd {fd}\), at")
    assert ms[0] >= 50, ms
    assert all("(blocks_in_read+" in "".join(stack) for _, stack in reports), reports
    assert re.search(rf"line \d+: 1 in read\(fd {fd}\)\n", out), out


def a_main_fiber(path):
    _, reports = told_by(path, "main_fiber")
    times(reports, r"motet: fiber \d+ has held thread \d+ for (\d+) ms: it computes, at")
    assert all("(computes_for+" in "".join(stack) for _, stack in reports), reports


def a_call_that_a_signal_would_end(path):
    out, reports = told_by(path, "blocked_in_a_sleep")
    assert out == "slept 0\n", out
    times(reports, r'motet: fiber \d+ "sleeper", .* for (\d+) ms: it is blocked in clock_nanosleep\(\), at')


def no_false_alarm(path):
    for name in ("busy_but_well", "not_watched"):
        _, reports = told_by(path, name)
        assert not reports, reports


def one_report_a_second(path):
    out, reports = told_by(path, "again_and_again")
    assert 1 <= len(reports) <= 8, reports
    assert any("others were not reported" in line for _, stack in reports for line in stack), reports
    assert int(re.match(r"(\d+) stalls", out)[1]) >= 5, out


def runtimes_that_begin_and_end(path):
    out, _ = told_by(path, "comings_and_goings")
    assert out == "done\n", out
    out, _ = told_by(path, "short_lives")
    assert out == "told 1\n", out


def a_forked_child(path):
    out, reports = told_by(path, "forked_child")
    if out != "left out\n":
        assert out == "the child ended with 0\n", out
        times(reports, r'motet: fiber \d+ "hog", .* for (\d+) ms: it computes.*')


def the_programs_own_handler(path):
    out, reports = told_by(path, "own_handler")
    assert out == "own\n" and reports, (out, reports)


def what_cannot_be_chosen(path):
    out, _ = told_by(path, "impossible_option")
    assert out.startswith("options.stall_report must be"), out


TESTS = [a_fiber_that_computes, a_blocking_call, a_call_that_a_signal_would_end, a_main_fiber,
         no_false_alarm, one_report_a_second, runtimes_that_begin_and_end, a_forked_child,
         the_programs_own_handler, what_cannot_be_chosen]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for test in TESTS:
        test(sys.argv[1])
        print(f"ok: {test.__name__}", flush=True)


if __name__ == "__main__":
    main()
