#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Has Spin verify the model of a thread that sleeps, and find each mistake that can be made in it.

usage: sleep_and_post_test.py SPIN COMPILER MODEL
"""

import re
import subprocess
import sys
import tempfile

MISTAKES = {
    "NO_SECOND_LOOK": "posted==0",
    "LATE_FLAG": "posted==0",
    "LATE_WAKE": "has_descriptor",
}


def verify(spin, compiler, model, *options):
    """Returns: Spin's report. It contains "errors: 0" if no assertion can fail."""
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([spin, "-a", *options, model], cwd=place, check=True, stdout=subprocess.DEVNULL)
        subprocess.run([compiler, "-O2", "-w", "-DSAFETY", "-o", "pan", "pan.c"], cwd=place, check=True)
        # -E: a thread that sleeps because there is nothing to do may do so for ever.
        return subprocess.run(["./pan", "-E", "-m100000"], cwd=place, check=True, capture_output=True, text=True).stdout


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    report = verify(*sys.argv[1:])
    failures = [] if "errors: 0" in report and "max search depth too small" not in report else [report]
    print(f"sleep and post: {re.search(r'([0-9]+) states, stored', report)[1]} states")
    for mistake, assertion in MISTAKES.items():
        report = verify(*sys.argv[1:], f"-D{mistake}")
        violated = re.search(r"assertion violated (.*) \(at depth", report)
        if violated is None or assertion not in violated[1]:
            failures.append(f"{mistake} was not found:\n{report}")
    print(*failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
