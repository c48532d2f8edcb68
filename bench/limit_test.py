#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whether the bare ring is a limit: motet's switch does more, so the ring must be well below it. A
bare loop that a better one could beat would make every target easier.

usage: limit_test.py DIRECTORY, where the benchmarks were built
"""

import pathlib
import subprocess
import sys

ROUNDS = 9
ROWS = [(("ring", 2), ("snooze", 2))]
MOST = 0.6


def measure(program, subject):
    process = subprocess.run(["taskset", "-c", "0", str(program), subject[0], str(subject[1]), "300000"],
                             capture_output=True, text=True, check=True, timeout=60)
    return float(process.stdout)


def main():
    directory = pathlib.Path(sys.argv[1])
    failure = False
    for limit, motet in ROWS:
        bare, figures = [], []
        for _ in range(ROUNDS):
            bare.append(measure(directory / "limit_bench", limit))
            figures.append(measure(directory / "motet_bench", motet))
        ratio = min(bare) / min(figures)
        failure = failure or ratio > MOST
        print(f"{' '.join(map(str, limit)):14} {min(bare):6.2f} ns, motet {min(figures):6.2f} ns: {ratio:.2f}"
              + (f"  MORE THAN {MOST}" if ratio > MOST else ""))
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
