#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What fibers cost, beside the limit of the machine and their peers, in interleaved runs.

usage: figures.py DIRECTORY [NAME...] [--rounds N] [--quick] [--json FILE] [--document FILE]
  DIRECTORY    where the benchmarks were built; a peer that is not there is left out
  NAME         figures, talk, work, ways or echo: one of the tables; all by default
  --rounds     of each measurement (default 9); the median counts
  --quick      small sizes: only whether it all works
  --json       writes what every run took, and on which processor, to FILE
  --document   puts the tables between the marks in FILE, and pictures beside it

Before and after each round a probe tells how quick the processor is: a round in a slow phase is
measured again. Exit status 1: a target was missed.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

from figure_pages import missed, picture, put, table
from figure_rows import SETS

HERE = pathlib.Path(__file__).resolve().parent
# Above that many times the quickest probe of the run, the machine is in a slow phase.
SLOW = 1.25
# How many slow rounds of a row are measured again, for each that is wanted.
PATIENCE = 2


def processor():
    """The name of the processor and how many there are."""
    for text in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if text.startswith("model name"):
            return f"{text.split(':')[1].strip()}, {os.cpu_count()} of its threads"
    return f"{os.uname().machine}, {os.cpu_count()} of its threads"


class Bench:
    """The programs, and how slow the machine has been while they ran."""

    def __init__(self, directory, rounds, quick):
        self.directory, self.rounds, self.quick = directory, rounds, quick
        self.dropped = 0
        self.has_limits = (directory / "limit_bench").exists()  # not for every processor
        self.quickest = min(self.probe() for _ in range(20))

    def measure(self, program, args, row=None):
        name, size, iterations = args
        if self.quick:
            limit = 200_000 if row and row.driver else 20_000
            size, iterations = min(size, 1_000), min(iterations, limit)
        environment = {**os.environ, **({"MOTET_BACKEND": row.backend} if row else {})}
        launcher = ([sys.executable, str(HERE / row.driver), str(self.directory), program]
                    if row and row.driver else [str(self.directory / program)])
        cores = row.cores if row and program != "limit_bench" else "0"
        command = ["taskset", "-c", cores, *launcher, name, str(size), str(iterations)]
        process = subprocess.run(command, capture_output=True, text=True, check=False, env=environment,
                                 timeout=600)
        if process.returncode != 0:
            sys.exit(f"{program} {args} failed ({process.returncode}): {process.stderr}")
        return float(process.stdout)

    def probe(self):
        return self.measure("limit_bench", ("probe", 0, 1)) if self.has_limits else 0

    def is_slow(self):
        probe = self.probe()
        self.quickest = min(self.quickest, probe)
        return probe > SLOW * self.quickest and not self.quick

    def round_of(self, row, programs):
        """Each program of the row once."""
        runs = {}
        if row.limit and (self.directory / row.limit_program).exists():  # not for every processor
            runs["limit"] = self.measure(row.limit_program, row.limit, row)
        for name, program in programs.items():
            runs[name] = self.measure(program, row.args, row)
        return runs

    def run_row(self, row):
        """All programs of a row in turn; a slow round counts only if there are too many of them."""
        programs = {"motet": row.motet, **(row.programs or {})}
        programs = {name: file for name, file in programs.items()
                    if (self.directory / file).exists()}
        count = min(self.rounds, row.most_rounds)
        patience = PATIENCE * count
        rounds = []
        slow = self.is_slow()
        while len(rounds) < count:
            runs = self.round_of(row, programs)
            slow, previous = self.is_slow(), slow
            if (slow or previous) and patience > 0:
                patience -= 1
                self.dropped += 1
                continue
            rounds.append(runs)
        return {name: [round_runs[name] for round_runs in rounds] for name in rounds[0]}

    def run_all(self, rows):
        results = []
        for row in rows:
            results.append((row, self.run_row(row)))
            print(table(results[-1:]).splitlines()[-1], flush=True)
        return results


def as_json(tables, bench):
    return json.dumps({
        "processor": processor(), "kernel": os.uname().release, "rounds": bench.rounds,
        "slow rounds dropped": bench.dropped,
        "tables": {name: [{"what": row.label, "unit": row.unit, "missed": missed(row, runs),
                           "runs": runs} for row, runs in results]
                   for name, results in tables.items()}}, indent=1) + "\n"


def main():
    options = argparse.ArgumentParser(description="what fibers cost")
    options.add_argument("directory", type=pathlib.Path)
    options.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SETS))
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--json", type=pathlib.Path)
    options.add_argument("--document", type=pathlib.Path)
    arguments = options.parse_args()
    for name in arguments.names:
        if name not in SETS:
            options.error(f"{name}: there are {', '.join(SETS)}")
    bench = Bench(arguments.directory, 1 if arguments.quick else arguments.rounds, arguments.quick)
    print(f"on {processor()}")
    tables = {}
    for name in arguments.names or SETS:
        rows, picture_name = SETS[name]
        tables[name] = bench.run_all(rows)
        if arguments.document:
            page = put(arguments.document.read_text(), name, table(tables[name]))
            arguments.document.write_text(put(page, "processor", f"On {processor()}."))
            arguments.document.with_name(picture_name).write_text(picture(tables[name]))
    if arguments.json:
        arguments.json.write_text(as_json(tables, bench))
    if bench.dropped:
        print(f"{bench.dropped} rounds were measured again: the machine was slow")
    misses = [row.label for results in tables.values() for row, runs in results
              if missed(row, runs)]
    print(f"{len(misses)} targets missed" + "".join(f"\n  {label}" for label in misses))
    return 1 if misses and not arguments.quick else 0


if __name__ == "__main__":
    sys.exit(main())
