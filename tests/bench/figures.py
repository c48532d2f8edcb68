#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What fibers cost, beside the limit of the machine and their peers, in interleaved runs.

usage: figures.py DIRECTORY [--rounds N] [--quick] [--document FILE] [--only figures|talk|work|ways]
  DIRECTORY    where the benchmarks were built
  --rounds     of each measurement (default 9); the median counts
  --quick      small sizes: only whether it all works
  --document   puts the tables between the marks in FILE, and pictures beside it
  --only       one of the tables

A target is what performance is to be on a machine whose bare ring takes what is named; it is scaled
by what the bare ring takes here, in the same run.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys


class Row:
    """One thing that is measured: `args` are WHAT SIZE ITERATIONS of each program."""

    def __init__(self, label, args, limit, target=None, at=None, unit="ns", boost=True,
                 backend="io_uring", most_rounds=1_000):
        self.label, self.args, self.limit, self.unit = label, args, limit, unit
        self.target, self.at = target, at  # ns where the limit takes `at` ns; `at` None: not scaled
        self.backend, self.most_rounds, self.cores = backend, most_rounds, "0"
        self.programs = {"motet": "motet_bench"}
        if boost:
            self.programs["Boost.Fiber"] = "boost_bench"


class Talk(Row):
    """Fibers that talk to one another. Without a target of its own, the best peer's figure is it."""

    def __init__(self, label, args, target=None, boost=True, cores="0", go=True):
        super().__init__(label, args, RING2, target, 2.7)
        self.cores = cores
        self.programs = {"motet": "sync_bench"}
        if boost:
            self.programs["Boost.Fiber"] = "boost_sync_bench"
        if go:
            self.programs["Go"] = "go_bench"


class Work(Row):
    """Work for other threads; all programs have both processors."""

    def __init__(self, label, args, target=None, programs=None):
        super().__init__(label, args, RING2, target, 2.7)
        self.cores = "0,1"
        self.programs = programs or {"motet": "pool_bench", "Boost.Fiber": "boost_pool_bench",
                                     "Go": "go_bench", "Asio": "asio_pool_bench"}


class Way(Work):
    """Fibers that go where something is, beside threads with a std::mutex."""

    def __init__(self, label, args, target=None, peer=True):
        super().__init__(label, args, target, {"motet": "ways_bench"})
        if peer:
            self.programs["std"] = "plain_bench"


def ring(size):
    return ("ring", size, 2_000_000)


RING2 = ring(2)
ROWS = [
    Row("snooze, 2 fibers", ("snooze", 2, 4_000_000), RING2, 5, 2.7),
    Row("snooze, 1,000", ("snooze", 1_000, 4_000_000), ring(1_000), 6, 3.0),
    Row("snooze, 10,000", ("snooze", 10_000, 2_000_000), ring(10_000), 20, 17),
    Row("snooze, 100,000", ("snooze", 100_000, 2_000_000), ring(100_000), 25, 21),
    Row("snooze, 2, a read and a timer pending (io_uring)", ("snooze_pending", 2, 2_000_000), RING2,
        5.5, 2.7, boost=False),
    Row("snooze, 2, a read and a timer pending (libev)", ("snooze_pending", 2, 2_000_000), RING2,
        6.5, 2.7, boost=False, backend="libev"),
    Row("spin + await", ("spin_await", 0, 500_000), RING2, 25, 2.7),
    Row("100,000 spun, then awaited: warm", ("spun_warm", 100_000, 0), RING2, 40, 2.7),
    Row("100,000 spun, then awaited: cold", ("spun_cold", 100_000, 0),
        ("touch_and_guard", 100_000, 0), 1.10, 1),
    Row("a group of 100 spun and awaited, per fiber", ("group_of", 100, 500_000), ring(100),
        boost=False),
    Row("wait with a deadline, woken", ("deadline", 0, 500_000), RING2, 35, 2.7),
    Row("the same, 1,000,000 timers armed", ("deadline", 1_000_000, 300_000), RING2, 60, 2.7,
        boost=False, most_rounds=3),  # to set them takes long
    Row("time limit entered and left", ("limit_unused", 0, 2_000_000),
        ("heap_push_remove", 0, 2_000_000), boost=False),
    Row("the same, 1,000,000 others armed", ("limit_unused", 1_000_000, 1_000_000),
        ("heap_push_remove", 1_000_000, 1_000_000), boost=False),
    Row("100,000 sleepers of 1 to 1,000 ms, CPU", ("sleepers", 100_000, 0), RING2, 250, 2.7, "ms"),
    Row("throw and catch across a switch", ("throw_across", 0, 200_000),
        ("throw_and_catch", 0, 200_000), boost=False),
    Row("100,000 parked, cancelled and awaited, per fiber", ("cancel_parked", 100_000, 0),
        ("throw_on_each", 100_000, 0), boost=False),
    Row("resident bytes of a parked fiber", ("memory", 20_000, 0), None, 4_400, None, "bytes"),
]


TALK = [
    Talk("channel ping-pong, local", ("ping_pong", 0, 1_000_000), 25),
    Talk("channel ping-pong, shared", ("ping_pong", 1, 1_000_000), 45),
    Talk("mutex nobody else wants, local", ("mutex_free", 0, 10_000_000), 2),
    Talk("mutex nobody else wants, shared", ("mutex_free", 1, 10_000_000), 12),
    Talk("mutex, 100 fibers, local", ("mutex_wanted", 0, 1_000_000), 20),
    Talk("mutex, 100 fibers, shared", ("mutex_wanted", 1, 1_000_000), 40),
    Talk("condition variable, turn and turn about, local", ("condition", 0, 500_000)),
    Talk("condition variable, turn and turn about, shared", ("condition", 1, 500_000)),
    Talk("two semaphores, turn and turn about, local", ("semaphores", 0, 1_000_000), boost=False),
    Talk("two semaphores, turn and turn about, shared", ("semaphores", 1, 1_000_000), boost=False),
    Talk("select of 4, local", ("select_of_4", 0, 1_000_000), boost=False),
    Talk("select of 4, shared", ("select_of_4", 1, 1_000_000), boost=False),
    Talk("a message of 4 producers to 4 consumers, local", ("four_to_four", 0, 1_000_000)),
    Talk("a message of 4 producers to 4 consumers, shared", ("four_to_four", 1, 1_000_000)),
    Talk("an actor's answer", ("request", 1, 500_000)),
    Talk("channel ping-pong of two threads", ("two_threads", 1, 20_000), 1_500, cores="0,1"),
]

WORK = [
    Work("channel ping-pong of two threads, awake", ("two_threads", 1, 20_000), 1_500,
         {"motet": "sync_bench", "Go": "go_bench"}),
    Work("channel ping-pong of two threads, asleep", ("two_threads", 0, 5_000), None,
         {"motet": "sync_bench", "Boost.Fiber": "boost_sync_bench"}),
    Work("a job, of 1,000,000 that leave their results", ("jobs", 0, 1_000_000), 45),
    Work("a job, of 1,000,000 with a future each", ("jobs_futures", 0, 1_000_000), 140),
    Work("a job given and awaited, one at a time", ("one_job", 0, 50_000), 1_000),
    Work("a call to another thread", ("call", 0, 50_000), None, {"motet": "pool_bench"}),
    Work("an offloaded job", ("offload", 0, 20_000), None,
         {"motet": "pool_bench", "Asio": "asio_pool_bench"}),
]

WAYS = [
    Way("a portal to a thread that is awake, and back", ("portal", 1, 100_000)),
    Way("a portal to a thread that is asleep, and back", ("portal", 0, 20_000)),
    Way("a portal to a thread that is not motet's, and back", ("portal_to_loop", 0, 20_000)),
    Way("100 fibers of 2 threads count over a strand", ("strand", 0, 500_000)),
    Way("the same with a mutex", ("mutex", 0, 2_000_000)),
    Way("timeslice_lock nobody else wants", ("slice_free", 0, 5_000_000)),
    Way("the same that another thread always wants", ("slice_wanted", 0, 20_000_000)),
    Way("yield_if_due, nobody waits", ("yield_if_due", 0, 50_000_000), 2, peer=False),
]

# Each table: its rows and the picture beside the document.
SETS = {"figures": (ROWS, "fibers.svg"), "talk": (TALK, "talk.svg"),
        "work": (WORK, "work.svg"), "ways": (WAYS, "ways.svg")}

PEERS = ("Boost.Fiber", "Go", "Asio", "std")
COLOURS = {"limit": "#9aa5b1", "motet": "#1f77b4", "Boost.Fiber": "#d98e4a", "Go": "#5aa469",
           "Asio": "#8d6cab", "std": "#b5565a"}


def measure(program, args, backend=None, quick=False, cores="0"):
    name, size, iterations = args
    if quick:
        size, iterations = min(size, 1_000), min(iterations, 20_000)
    environment = dict(os.environ)
    if backend:
        environment["MOTET_BACKEND"] = backend
    prefix = ["taskset", "-c", cores]
    run = subprocess.run([*prefix, str(program), name, str(size), str(iterations)],
                         capture_output=True, text=True, check=False, env=environment, timeout=600)
    if run.returncode != 0:
        sys.exit(f"{program.name} {args} failed ({run.returncode}): {run.stderr}")
    return float(run.stdout)


def run_row(row, directory, rounds, quick):
    """All programs of a row in turn, `rounds` times."""
    programs = {name: directory / file for name, file in row.programs.items()
                if (directory / file).exists()}
    found = {"limit": [], **{name: [] for name in programs}}
    for _ in range(min(rounds, row.most_rounds)):
        if row.limit:
            found["limit"].append(measure(directory / "limit_bench", row.limit, quick=quick))
        for name, program in programs.items():
            found[name].append(measure(program, row.args, row.backend, quick, row.cores))
    return found


def number(value):
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def middle(values):
    if not values:
        return "–"
    return f"{number(statistics.median(values))} ({number(min(values))}–{number(max(values))})"


def scaled_target(row, found):
    if row.target is None:
        return None
    if row.at is None:
        return row.target
    return row.target * statistics.median(found["limit"]) / row.at


def verdict(row, found):
    """A miss is when three quarters of the runs are above the target; without one, the ratio."""
    target = scaled_target(row, found)
    values = found["motet"]
    peers = [statistics.median(found[name]) for name in PEERS if found.get(name)]
    if target is None and isinstance(row, (Talk, Work)) and peers:
        if isinstance(row, Way):
            return "–"  # its peer is another thing, to choose from
        target = min(peers)
    if target is None:
        ratio = statistics.median(values) / statistics.median(found["limit"])
        return f"– ({number(ratio)} × the limit)"
    quartiles = statistics.quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3
    word = "missed" if quartiles[0] > target else "met"
    return f"{number(target)}: {word}"


def table(results):
    peers = [name for name in PEERS if any(name in found for _, found in results)]
    lines = ["| " + " | ".join(["what", "unit", "limit here", "motet", "target, scaled", *peers]) + " |",
             "|---" * (5 + len(peers)) + "|"]
    for row, found in results:
        cells = [row.label, row.unit, middle(found["limit"]), middle(found["motet"]),
                 verdict(row, found), *(middle(found.get(name)) for name in peers)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def picture(results):
    """Bars, one group a row, each drawn relative to the longest of its row."""
    width, left, bar, gap = 760, 300, 13, 12
    parts, y = [], 34
    present = [name for name in COLOURS if any(found.get(name) for _, found in results)]
    for place, name in enumerate(present):
        x = left + 90 * place
        parts.append(f'<rect x="{x}" y="8" width="11" height="11" fill="{COLOURS[name]}"/>'
                     f'<text x="{x + 16}" y="18">{name}</text>')
    for row, found in results:
        shown = [(name, statistics.median(values)) for name, values in found.items() if values
                 and not (name == "limit" and row.unit != "ns")]
        shown.sort(key=lambda each: list(COLOURS).index(each[0]))
        longest = max(value for _, value in shown)
        parts.append(f'<text x="{left - 10}" y="{y + 11}" text-anchor="end">{row.label}</text>')
        for name, value in shown:
            length = max(2, (width - left - 120) * value / longest)
            parts.append(f'<rect x="{left}" y="{y}" width="{length:.0f}" height="{bar - 2}" '
                         f'fill="{COLOURS[name]}"/><text x="{left + length + 6:.0f}" y="{y + 10}">'
                         f'{number(value)} {row.unit}</text>')
            y += bar
        y += gap
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" '
            f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" '
            f'fill="white"/>{"".join(parts)}</svg>\n')


def put(document, marks, text):
    """Replaces what is between two marks."""
    before, rest = document.split(marks[0])
    return f"{before}{marks[0]}\n{text}\n{marks[1]}{rest.split(marks[1])[1]}"


def run_all(rows, directory, rounds, quick):
    results = []
    for row in rows:
        results.append((row, run_row(row, directory, rounds, quick)))
        print(table(results[-1:]).splitlines()[-1], flush=True)
    return results


def main():
    options = argparse.ArgumentParser(description="what fibers cost")
    options.add_argument("directory", type=pathlib.Path)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--document", type=pathlib.Path)
    options.add_argument("--only", choices=SETS, help="one of the tables")
    given = options.parse_args()
    rounds = 1 if given.quick else given.rounds
    for name, (rows, picture_name) in SETS.items():
        if given.only not in (None, name):
            continue
        results = run_all(rows, given.directory, rounds, given.quick)
        if not given.document:
            continue
        marks = (f"<!-- {name}: begin -->", f"<!-- {name}: end -->")
        given.document.write_text(put(given.document.read_text(), marks, table(results)))
        given.document.with_name(picture_name).write_text(picture(results))


if __name__ == "__main__":
    main()
