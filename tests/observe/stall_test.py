#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fibers that hold their thread are named while they do so, and no others: runs stall_programs.

usage: stall_test.py PROGRAM
"""

import concurrent.futures
import re
import subprocess
import sys

PATIENCE = 50
# LeakSanitizer looks in a forked child for the threads of its parent.
NOT_OURS = re.compile(r"==\d+==Running thread \d+ was not suspended\. False leaks are possible\.")


def told_by(path, name):
    """What a program writes: its output, and its reports with their stacks."""
    result = subprocess.run([path, name], capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 0, f"{name} ended with {result.returncode}: {result.stderr}"
    reports = []
    for line in result.stderr.splitlines():
        if NOT_OURS.fullmatch(line):
            continue
        if line.startswith("  "):
            reports[-1][1].append(line)
        else:
            reports.append((line, []))
    return result.stdout, reports


def times(reports, pattern):
    """The milliseconds of each report, all of which are like the pattern."""
    matches = [re.fullmatch(pattern, line) for line, _ in reports]
    assert matches and all(matches), (pattern, reports)
    return [int(match[1]) for match in matches]


def a_fiber_that_computes(path):
    for name, function in (("hog", "computes_for"), ("guarded_hog", "computes_with_guards_for"),
                           ("assembly_hog", "computes_in_assembly_for")):
        _, reports = told_by(path, name)
        ms = times(reports, r'motet: fiber \d+ "hog", spun at \S*stall_programs.cpp:\d+, '
                            r"has held thread \d+ for (\d+) ms: it computes, at")
        assert ms[0] >= 50, ms
        assert all(f"({function}+" in "".join(stack) for _, stack in reports), reports


def a_blocking_call(path):
    output, reports = told_by(path, "blocking_read")
    fd = re.match(r"fd (\d+)\n", output)[1]
    ms = times(reports, r'motet: fiber \d+ "reader", spun at \S*stall_programs.cpp:\d+, '
                        rf"has held thread \d+ for (\d+) ms: it is blocked in read\(fd {fd}\), at")
    assert ms[0] >= 50, ms
    assert all("(blocks_in_read+" in "".join(stack) for _, stack in reports), reports
    assert re.search(rf"line \d+: 1 in read\(fd {fd}\)\n", output), output


def a_main_fiber(path):
    _, reports = told_by(path, "main_fiber")
    times(reports, r"motet: fiber \d+ has held thread \d+ for (\d+) ms: it computes, at")
    assert all("(computes_for+" in "".join(stack) for _, stack in reports), reports


def a_call_that_a_signal_would_end(path):
    output, reports = told_by(path, "blocked_in_a_sleep")
    assert output == "slept 0\n", output
    times(reports, r'motet: fiber \d+ "sleeper", .* for (\d+) ms: it is blocked in clock_nanosleep\(\), at')


def no_false_alarm(path):
    for name in ("busy_but_well", "not_watched"):
        _, reports = told_by(path, name)
        assert not reports, reports


def one_report_a_second(path):
    output, reports = told_by(path, "again_and_again")
    assert 1 <= len(reports) <= 8, reports
    assert any("others were not reported" in line for _, stack in reports for line in stack), reports
    assert int(re.match(r"(\d+) stalls", output)[1]) >= 5, output


def runtimes_that_begin_and_end(path):
    output, _ = told_by(path, "comings_and_goings")
    assert output == "done\n", output
    output, _ = told_by(path, "short_lives")
    assert output == "told 1\n", output


def a_forked_child(path):
    output, reports = told_by(path, "forked_child")
    if output != "left out\n":
        assert output == "the child ended with 0\n", output
        times(reports, r'motet: fiber \d+ "hog", .* for (\d+) ms: it computes.*')


def the_programs_own_handler(path):
    output, reports = told_by(path, "own_handler")
    assert output == "own\n" and reports, (output, reports)


def what_cannot_be_chosen(path):
    output, _ = told_by(path, "impossible_option")
    assert output.startswith("options.stall_report must be"), output


TESTS = [one_report_a_second, a_fiber_that_computes, a_blocking_call, a_call_that_a_signal_would_end, a_main_fiber,
         runtimes_that_begin_and_end, a_forked_child, the_programs_own_handler, what_cannot_be_chosen]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    no_false_alarm(sys.argv[1])  # alone: a program without a processor seems to hold its thread
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        outcomes = [(test.__name__, pool.submit(test, sys.argv[1])) for test in TESTS]
    for name, outcome in outcomes:
        outcome.result()
        print(f"ok: {name}", flush=True)


if __name__ == "__main__":
    main()
