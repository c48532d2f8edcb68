#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares echo servers under the same load.

The servers take turns (A B C A B C ...), each measurement with a fresh process, so that a machine
that grows slower or faster meanwhile meets all of them alike; a pair is compared round by round.
"""

import argparse
import json
import os
import select
import shlex
import signal
import statistics
import subprocess
import sys


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--load", required=True, metavar="PATH", help="the echo_load program")
    parser.add_argument("--server", required=True, action="append", metavar="NAME=COMMAND")
    parser.add_argument("--pair", default=[], action="append", metavar="NAME:REFERENCE")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--connections", default="1,50,500,5000")
    parser.add_argument("--same-core", action="store_true",
                        help="adds a row: 1 connection, server and client on one core")
    parser.add_argument("--json", metavar="FILE", help="where to write every measurement")
    parser.add_argument("--minimum", type=float, metavar="RATIO",
                        help="fail when a pair's requests/s are clearly below this ratio")
    arguments = parser.parse_args()
    try:
        arguments.server = {name: shlex.split(command) for name, command in
                            (entry.split("=", 1) for entry in arguments.server)}
        arguments.pair = [tuple(entry.split(":", 1)) for entry in arguments.pair]
        arguments.connections = [int(count) for count in arguments.connections.split(",")]
    except ValueError as error:
        parser.error(str(error))
    unknown = {name for pair in arguments.pair for name in pair} - set(arguments.server)
    if unknown or arguments.rounds < 1 or not all(len(pair) == 2 for pair in arguments.pair):
        parser.error(f"--rounds must be 1 or more; pairs need two known servers {sorted(unknown)}")
    if arguments.minimum is not None and not arguments.pair:
        parser.error("--minimum needs a --pair")
    return arguments


def pinned(core):
    """What a child does before it runs its program; core None leaves it where it is."""
    return (lambda: os.sched_setaffinity(0, {core})) if core is not None else None


class Server:
    """A running server process: with-block from its port line to its clean end."""

    def __init__(self, name, command, core):
        self.name = name
        self.process = subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE,
                                        text=True, preexec_fn=pinned(core))

    def __enter__(self):
        ready, _, _ = select.select([self.process.stdout], [], [], 10)
        line = self.process.stdout.readline() if ready else ""
        prefix = "listening on 127.0.0.1:"
        if not line.startswith(prefix):
            self.process.kill()
            self.process.wait()
            sys.exit(f"{self.name}: expected '{prefix}PORT', got {line!r}")
        self.port = line.removeprefix(prefix).strip()
        return self

    def __exit__(self, error_type, *_):
        self.process.terminate()
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = f"{self.process.wait()} (killed, 5 s after SIGTERM)"
        self.process.stdout.close()
        if code != 0 and error_type is None:
            sys.exit(f"{self.name}: exit code {code}")


def cores_apart():
    """One core for the server and another for the load, if there are two."""
    processors = sorted(os.sched_getaffinity(0))
    return (processors[0], processors[1]) if len(processors) > 1 else (None, None)


def load(program, server, connections, seconds, core, *extra_arguments):
    """The result of a run of echo_load, which must have counted no error."""
    command = [str(program), "--port", server.port, "--connections", str(connections),
               "--seconds", str(seconds), "--json", *extra_arguments]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=seconds + 60,
                             preexec_fn=pinned(core))
    result = json.loads(process.stdout) if process.stdout else None
    if process.returncode != 0 or result["errors"] > 0:
        sys.exit(f"{server.name}: {command[0]} ended with {process.returncode}: {result}")
    return result


def measure(arguments, name, connections, cores):
    """One measurement: echo_load's result, with server CPU in us per request and its busy share."""
    server_core, client_core = cores
    with Server(name, arguments.server[name], server_core) as server:
        result = load(arguments.load, server, connections, arguments.seconds, client_core,
                      "--server-pid", str(server.process.pid))
    result["cpu_us"] = result["server_cpu_us"] / result["requests"]
    result["busy_percent"] = result["server_cpu_us"] / result["seconds"] / 1e4
    return result


def rows(arguments):
    """The rows of the tables: (title, connections, (server core, client core))."""
    for connections in arguments.connections:
        yield str(connections), connections, cores_apart()
    if arguments.same_core:
        core = min(os.sched_getaffinity(0))
        yield "1 same core", 1, (core, core)


def spread(values, digits):
    middle, low, high = statistics.median(values), min(values), max(values)
    digits = digits if high < 1000 else 0
    return f"{middle:,.{digits}f} [{low:,.{digits}f}, {high:,.{digits}f}]"


def print_row(title, results):
    columns = (("requests_per_second", 0), ("cpu_us", 2), ("busy_percent", 0), ("p50_us", 1),
               ("p99_us", 1))
    for name, rounds in results.items():
        cells = [spread([sample[key] for sample in rounds], digits) for key, digits in columns]
        print(f"{title:>12}  {name:<14}", "".join(f"{cell:>27}" for cell in cells), flush=True)


def compare(results, title, pair):
    """Quartiles of the round-by-round ratios of one pair, for requests/s and CPU per request."""
    quartiles = {}
    for key in ("requests_per_second", "cpu_us"):
        ratios = [numerator[key] / denominator[key]
                  for numerator, denominator in zip(*(results[name] for name in pair))]
        quartiles[key] = (statistics.quantiles(ratios, n=4, method="inclusive")
                          if len(ratios) > 1 else ratios * 3)
    return {"row": title, "pair": pair, **quartiles}


def print_pairs(pairs):
    print(f"\n{'connections':>12}  {'pair: median (quartiles)':<30}{'requests/s':>24}"
          f"{'CPU/request':>24}")
    for ratio in pairs:
        cells = ("{1:.3f} ({0:.3f} - {2:.3f})".format(*ratio[key])
                 for key in ("requests_per_second", "cpu_us"))
        print(f"{ratio['row']:>12}  {' : '.join(ratio['pair']):<30}",
              "".join(f"{cell:>24}" for cell in cells))


def main():
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # still stops the server
    head = ("requests/s", "server CPU us/request", "server busy %", "p50 us", "p99 us")
    print(f"{arguments.rounds} rounds, each cell: median [min, max]")
    print(f"{'connections':>12}  {'server':<14}", "".join(f"{cell:>27}" for cell in head))
    table, pairs = {}, []
    for title, connections, cores in rows(arguments):
        results = {name: [] for name in arguments.server}
        for _ in range(arguments.rounds):
            for name, rounds in results.items():
                rounds.append(measure(arguments, name, connections, cores))
        print_row(title, results)
        table[title] = results
        pairs += [compare(results, title, pair) for pair in arguments.pair]
    if pairs:
        print_pairs(pairs)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"measurements": table, "pairs": pairs}, file, indent=1)
    if arguments.minimum is not None:
        # The third quartile bounds median and range alike: noise alone does not fail the check.
        slow = [pair for pair in pairs if pair["requests_per_second"][2] < arguments.minimum]
        for pair in slow:
            print(f"too slow: {' : '.join(pair['pair'])} at {pair['row']} connections")
        sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
