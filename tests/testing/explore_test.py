#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What testing::explore() reports, and that a report repeats the failure.

usage: explore_test.py PROGRAM
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile


def run(program, name, place, **variables):
    return subprocess.run([program, name], capture_output=True, text=True, timeout=50, env=os.environ | {"TMPDIR": place} | variables)


def check_report(program, place):
    found = run(program, "wrong", place)
    assert found.returncode == 1, found
    report = re.search(r"failed with seed (\d+), after \d+ steps and \d+ decisions: the function threw: forty-two\n"
                       r"motet: to repeat it, set MOTET_SEED=(\d+) MOTET_LOG=(\S+)\n", found.stderr)
    assert report is not None, found.stderr
    seed, log = report[1], report[3]
    assert report[2] == seed
    assert pathlib.Path(log).read_text().startswith("motet decisions 1\n")
    for variables in ({"MOTET_SEED": seed}, {"MOTET_LOG": log}, {"MOTET_SEED": seed, "MOTET_LOG": log}):
        again = run(program, "wrong", place, **variables)
        assert again.returncode == 1 and "forty-two" in again.stderr, (variables, again)
    other = run(program, "wrong", place, MOTET_SEED=str(int(seed) + 1))
    assert other.returncode == 0, other
    short = re.search(r"motet: (\d+) decisions are enough: MOTET_SEED=\d+ MOTET_LOG=(\S+)\n", found.stderr)
    assert short is not None, found.stderr
    again = run(program, "wrong", place, MOTET_LOG=short[2])
    assert again.returncode == 1 and "forty-two" in again.stderr, again
    assert "are enough" not in again.stderr, again
    return log


def check_shrinking(program, place):
    """Of many decisions four remain: two that matter, and two that there be no others."""
    found = run(program, "noisy", place)
    before = re.search(r"and (\d+) decisions: the function threw: both are right", found.stderr)
    after = re.search(r"motet: (\d+) decisions are enough: MOTET_SEED=\d+ MOTET_LOG=(\S+)\n", found.stderr)
    assert before is not None and after is not None, found.stderr
    log = pathlib.Path(after[2]).read_text().splitlines()
    assert log[0] == "motet decisions 1, then 0", log
    assert len(log) == int(after[1]) + 1, log
    assert len(log) == 5, log
    assert int(after[1]) < int(before[1]), (before[1], after[1])
    again = run(program, "noisy", place, MOTET_LOG=after[2])
    assert again.returncode == 1 and "both are right" in again.stderr, again


def check_seeds(program, place, seed):
    for seeds, status in ((seed, 0), (str(int(seed) + 1), 1), (f"{seed}-{seed}", 1), (f"{int(seed) + 1}-{int(seed) + 2}", 0)):
        found = run(program, "wrong", place, MOTET_SEEDS=seeds)
        assert found.returncode == status, (seeds, found)


def check_summary(program, place):
    found = run(program, "correct", place, MOTET_SUMMARY="1", MOTET_SEEDS="50")
    assert found.returncode == 0, found
    assert re.match(r"motet: 50 simulations, \d+ steps, 0 s of virtual time\n"
                    r"motet:   \d+ random numbers, \d+ not 0\n$", found.stderr), found.stderr


def check_fuzzing(program, place):
    passed = run(program, "wrong", place, BYTES="")
    assert passed.returncode == 0 and passed.stderr == "", passed
    outcomes = {run(program, "wrong", place, BYTES=chr(1) * before + "*").returncode for before in range(12)}
    assert outcomes == {0, -6}, outcomes


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as place:
        passed = run(program, "correct", place)
        assert passed.returncode == 0 and passed.stderr == "", passed
        log = check_report(program, place)
        check_shrinking(program, place)
        check_seeds(program, place, re.search(r"/motet-(\d+)-", log)[1])
        check_fuzzing(program, place)
        check_summary(program, place)
        differs = run(program, "random_of_its_own", place, MOTET_LOG=log)
        assert "the run differs from the log: decision 0 was " in differs.stderr, differs
        twice = run(program, "random_of_its_own", place)
        assert twice.returncode == 1, twice
        assert "the same seed ran differently when it was repeated: the run differs from the log" in twice.stderr, twice
        switches = run(program, "switching_invariant", place)
        assert switches.returncode < 0 and re.search(r"within the no_switch_guard made at \S*explore_programs.cpp:\d+", switches.stderr), switches
        endless = run(program, "stubborn", place)
        assert endless.returncode < 0 and "failed with seed 0: the invariant of" in endless.stderr, endless
        assert "do not end when they are cancelled" in endless.stderr, endless
        left = run(program, "left_thread", place)
        assert left.returncode < 0, left
        assert "the function left a thread running, made by the fiber of the main function" in left.stderr, left
        for variables, message in (({"MOTET_SEED": "x"}, "MOTET_SEED is not a number: x"), ({"MOTET_SEED": "-1"}, "MOTET_SEED is not"),
                                   ({"MOTET_SEEDS": "many"}, "MOTET_SEEDS is not a number: many"), ({"MOTET_SEEDS": "1-"}, "MOTET_SEEDS is not"),
                                   ({"MOTET_SEEDS": "9-3"}, "MOTET_SEEDS is an empty range: 9-3"),
                                   ({"MOTET_LOG": place + "/none"}, "MOTET_LOG: " + place + "/none cannot be read"),
                                   ({"MOTET_LOG": program}, "a log of decisions")):
            refused = run(program, "correct", place, **variables)
            assert refused.returncode == 3 and message in refused.stderr, (variables, refused)


main()
