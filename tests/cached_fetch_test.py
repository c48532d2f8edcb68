#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plays one check of the cached fetch, or its scenario, and looks at what can only be seen from outside.

C1   what no cache has comes from the network, once; also after a restart
C2   the first cache that has it ends the search in the other one
C3   caches that block their threads delay neither the network nor the user
C4   a request can be cancelled before its start and at each of its waits
C5   what has been fetched is kept in both caches, cancelled or not
C6   the network's time limit is told from the other one
C7   the overall limit holds everywhere but while something is being kept
C8   an error is told as what it is
C9   ten thousand requests on two threads
C10  all of that at once, with a user interface that stands still, and is closed

usage: cached_fetch_test.py PROGRAM scenario|C1|...|C10 [--slack F] [--watched]
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

EVENTS = {"start", "mem_get", "disk_get", "connect", "sent", "received", "mem_set", "disk_set", "ui",
          "cancel_req", "finish"}
LIMIT = 600  # seconds, for what hangs; the suite's own limit is less


def lines_of(text):
    """The events and the summary of a run."""
    parsed = [json.loads(line) for line in text.splitlines()]
    summaries = [each["summary"] for each in parsed if "summary" in each]
    assert len(summaries) == 1 and "summary" in parsed[-1], "the last line is no summary"
    return parsed[:-1], summaries[0]


def check_lives(events):
    """Each event is of a fiber between its start and its finish, of which it has one each."""
    lives = collections.defaultdict(list)
    for event in events:
        assert {"t_us", "thread", "fiber", "ev"} <= set(event) and event["ev"] in EVENTS, event
        if event["ev"] != "cancel_req":  # of somebody who runs no fiber
            lives[event["fiber"]].append(event)
    assert lives
    for fiber, its in lives.items():
        kinds = [event["ev"] for event in its]
        assert kinds[0] == "start" and kinds[-1] == "finish", (fiber, kinds)
        assert kinds.count("start") == kinds.count("finish") == 1, (fiber, kinds)
        times = [event["t_us"] for event in its]
        assert times == sorted(times), (fiber, its)
        assert "outcome" in its[-1], its[-1]
        parent = its[0].get("parent")
        if parent:
            first, last = lives[parent][0]["t_us"], lives[parent][-1]["t_us"]
            assert first <= times[0] and times[-1] <= last, f"{fiber} outlives {parent}"
    return lives


def run(program, *words):
    result = subprocess.run([program, *words], stdout=subprocess.PIPE, text=True, timeout=LIMIT)
    assert result.returncode == 0, f"{words} ended with {result.returncode}:\n{result.stdout}"
    return result.stdout


def play_scenario(program):
    begin = time.monotonic()
    events, summary = lines_of(run(program))
    seconds = time.monotonic() - begin
    lives = check_lives(events)
    requests = [its for its in lives.values() if "parent" not in its[0]]
    outcomes = collections.Counter(its[-1]["outcome"] for its in requests)
    assert outcomes == summary["outcomes"], (outcomes, summary)
    assert set(outcomes) == {"value", "cancelled", "timed_out network", "timed_out overall"}, outcomes
    for its in requests:
        told = [event["thread"] for event in its if event["ev"] == "ui"]
        assert told == ["ui"], its
    assert seconds < 20, seconds


class Server:
    """The program as a server of its own."""

    def __init__(self, program, *words):
        self.process = subprocess.Popen([program, "--serve", *words], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("listening on 127.0.0.1:"), line
        self.port = line.strip().rsplit(":", 1)[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(LIMIT)
        self.process.stdout.close()


def restart(program):
    """The second process finds on disk what the first has fetched."""
    with tempfile.TemporaryDirectory() as cache, Server(program) as server:
        words = ["--fetch", "hello", "--port", server.port, "--cache-dir", cache]
        for fetched in (True, False):
            events, summary = lines_of(run(program, *words))
            check_lives(events)
            assert summary["outcomes"] == {"value": 1}, summary
            assert any(event["ev"] == "connect" for event in events) == fetched, events
            hits = [event["ev"] for event in events if event.get("outcome") == "hit"]
            assert bool(hits) != fetched, events


def futex_waits(program):
    """Threads with something to run do not wait for one another: of many requests hardly one meets a
    lock of the allocator's, and none one of the program's."""
    requests = 300
    with tempfile.TemporaryDirectory() as place:
        trace = pathlib.Path(place) / "futex"
        tracer = ["strace", "-f", "-e", "trace=futex,prctl", "-o", str(trace)]
        try_it = subprocess.run([*tracer, "true"], stderr=subprocess.DEVNULL)
        if try_it.returncode != 0:
            print("strace may not trace here: left out")
            return
        subprocess.run([*tracer, program, "--check", "C9", "--requests", str(requests), "--slack",
                        "100"], check=True, timeout=LIMIT, stdout=subprocess.DEVNULL)
        names, waits = {}, collections.Counter()
        for line in trace.read_text().splitlines():
            thread = line.split()[0]
            if name := re.search(r'PR_SET_NAME, "([^"]*)"', line):
                names[thread] = name[1]
            elif "FUTEX_WAIT" in line and "resumed" not in line:
                waits[names.get(thread, "?")] += 1
    print("futex waits:", dict(waits))
    for name, count in waits.items():
        if name.startswith(("cpu", "net")):
            assert count < requests / 10, waits


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("what")
    options.add_argument("--slack", type=float, default=1)
    options.add_argument("--watched", action="store_true", help="by a sanitizer")
    given = options.parse_args()
    if given.what == "scenario":
        play_scenario(given.program)
        return
    masked = "MOTET_DISABLE" in os.environ  # what is slower without a feature
    words = ["--check", given.what, "--slack", str(given.slack * (3 if masked else 1))]
    if given.watched:
        words += ["--watched", "--requests", "2000"]
    if given.what == "C10":
        full = os.environ.get("MOTET_TEST_SCALE") == "full"
        words += ["--seconds", os.environ.get("MOTET_TEST_SECONDS", "60" if full else "2")]
    result = subprocess.run([given.program, *words], timeout=LIMIT)
    if result.returncode != 0:
        sys.exit(result.returncode)
    if given.what == "C1":
        restart(given.program)
    if given.what == "C9" and not given.watched and not masked and shutil.which("strace"):
        futex_waits(given.program)


if __name__ == "__main__":
    main()
