#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The fetcher of examples/cached_fetch beside a thread for each request, against one server, in turn.

usage: compare_fetch.py BUILD [--rounds N] [--requests N] [--in-flight 1,100,1000] [--reply-ms N]
                        [--quick] [--json FILE]
  BUILD    where the benchmarks were built

Every request has a key of its own, so each asks both caches, the server, and both caches again, and
then tells the user's thread. The programs take turns in every round; the medians count.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

COLUMNS = (("requests_per_second", "requests/s"), ("p50_us", "p50 us"), ("p99_us", "p99 us"),
           ("cpu_us", "CPU us/request"))
IN_MEMORY = pathlib.Path("/dev/shm")  # so that nobody's disk is measured


def contenders(build):
    fetch = build / "bench/fiber_fetch"
    yield "fibers, io_uring", fetch, "io_uring"
    yield "fibers, libev", fetch, "libev"
    yield "threads", build / "bench/thread_fetch", ""


def measure(program, backend, port, requests, in_flight):
    place = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as cache:
        start = os.times()
        result = subprocess.run(
            [program, "--load", str(requests), "--in-flight", str(in_flight), "--port", port,
             "--cache-dir", cache],
            env={**os.environ, "MOTET_BACKEND": backend}, stdout=subprocess.PIPE, text=True,
            timeout=600)
        end = os.times()
    if result.returncode != 0:
        sys.exit(f"{program} ended with {result.returncode}")
    figures = json.loads(result.stdout)
    cpu_time = (end.children_user + end.children_system
                - start.children_user - start.children_system)
    return {**figures, "cpu_us": cpu_time * 1e6 / requests}


def compare(options, port):
    results = []
    names = [name for name, _, _ in contenders(options.build)]
    for in_flight in options.in_flight:
        rounds = {name: [] for name in names}
        for _ in range(options.rounds):
            for name, program, backend in contenders(options.build):
                rounds[name].append(measure(program, backend, port, options.requests, in_flight))
        for name, figures in rounds.items():
            middle = {key: statistics.median(sample[key] for sample in figures) for key, _ in COLUMNS}
            results.append({"in_flight": in_flight, "name": name, "median": middle, "rounds": figures})
            cells = " | ".join(f"{middle[key]:,.0f}" for key, _ in COLUMNS)
            print(f"| {in_flight:,} | {name} | {cells} |", flush=True)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--in-flight", default="1,100,1000")
    parser.add_argument("--reply-ms", default="0")
    parser.add_argument("--quick", action="store_true", help="only whether it works")
    parser.add_argument("--json", type=pathlib.Path, help="where to write every measurement")
    options = parser.parse_args()
    options.in_flight = [int(count) for count in options.in_flight.split(",")]
    if options.quick:
        options.rounds, options.requests, options.in_flight = 1, 500, [1, 50]
    server = subprocess.Popen([options.build / "bench/fiber_fetch", "--serve", "--reply-ms",
                               options.reply_ms], stdout=subprocess.PIPE, text=True)
    try:
        port = server.stdout.readline().strip().rsplit(":", 1)[1]
        print("| at a time | how | " + " | ".join(title for _, title in COLUMNS) + " |")
        print("|---" * (2 + len(COLUMNS)) + "|")
        results = compare(options, port)
    finally:
        server.terminate()
        server.wait()
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
