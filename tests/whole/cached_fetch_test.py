#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plays one check of the cached fetch, or its story, and looks at what can only be seen from outside.

C1   a value that no cache has comes from the network, once; also after a restart
C2   the first cache with the value ends the search in the other one
C3   caches that block their threads delay neither the network nor the user
C4   a request can be cancelled before its start and at each of its waits
C5   a value that has been fetched is kept in both caches, cancelled or not
C6   the user sees the network's time limit as such
C7   the overall limit holds everywhere but while a value is being stored
C8   the user sees the reason of an error
C9   ten thousand requests on two threads
C10  all of that at once, with a user interface that stands still, and is closed

usage: cached_fetch_test.py PROGRAM story|C1|...|C10 [--slack F] [--watched]
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
LIMIT = 600  # seconds until a program hangs; the limit of the suite is less


def lines_of(text):
    """The events and the summary of a run."""
    lines = [json.loads(line) for line in text.splitlines()]
    summaries = [line["summary"] for line in lines if "summary" in line]
    assert len(summaries) == 1 and "summary" in lines[-1], "the last line is no summary"
    return lines[:-1], summaries[0]


def check_lives(events):
    """Each event is of a fiber that has one start before it and one finish after it."""
    lives = collections.defaultdict(list)
    for event in events:
        assert {"t_us", "thread", "fiber", "ev"} <= set(event) and event["ev"] in EVENTS, event
        if event["ev"] != "cancel_req":  # of a thread without fibers
            lives[event["fiber"]].append(event)
    assert lives
    for fiber, life in lives.items():
        kinds = [event["ev"] for event in life]
        assert kinds[0] == "start" and kinds[-1] == "finish", (fiber, kinds)
        assert kinds.count("start") == kinds.count("finish") == 1, (fiber, kinds)
        times = [event["t_us"] for event in life]
        assert times == sorted(times), (fiber, life)
        assert "outcome" in life[-1], life[-1]
        parent = life[0].get("parent")
        if parent:
            first, last = lives[parent][0]["t_us"], lives[parent][-1]["t_us"]
            assert first <= times[0] and times[-1] <= last, f"{fiber} outlives {parent}"
    return lives


def run(program, *words):
    result = subprocess.run([program, *words], stdout=subprocess.PIPE, text=True, timeout=LIMIT)
    assert result.returncode == 0, f"{words} ended with {result.returncode}:\n{result.stdout}"
    return result.stdout


def play_story(program):
    begin = time.monotonic()
    events, summary = lines_of(run(program))
    seconds = time.monotonic() - begin
    lives = check_lives(events)
    requests = [life for life in lives.values() if "parent" not in life[0]]
    outcomes = collections.Counter(life[-1]["outcome"] for life in requests)
    assert outcomes == summary["outcomes"], (outcomes, summary)
    assert set(outcomes) == {"value", "cancelled", "timed_out network", "timed_out overall"}, outcomes
    for life in requests:
        threads = [event["thread"] for event in life if event["ev"] == "ui"]
        assert threads == ["ui"], life
    assert seconds < 20, seconds


class Server:
    """The program as a server."""

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
        for is_first in (True, False):
            events, summary = lines_of(run(program, *words))
            check_lives(events)
            assert summary["outcomes"] == {"value": 1}, summary
            assert any(event["ev"] == "connect" for event in events) == is_first, events
            hits = [event["ev"] for event in events if event.get("outcome") == "hit"]
            assert bool(hits) != is_first, events


def futex_waits(program):
    """Busy threads do not wait for one another: few requests meet a lock of the allocator, and none
    a lock of the program."""
    requests = 900
    with tempfile.TemporaryDirectory() as place:
        trace = pathlib.Path(place) / "futex"
        tracer = ["strace", "-f", "-e", "trace=futex,prctl", "-o", str(trace)]
        probe = subprocess.run([*tracer, "true"], stderr=subprocess.DEVNULL)
        if probe.returncode != 0:
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
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("check")
    parser.add_argument("--slack", type=float, default=1)
    parser.add_argument("--watched", action="store_true", help="by a sanitizer")
    options = parser.parse_args()
    if options.check == "story":
        play_story(options.program)
        return
    is_masked = "MOTET_DISABLE" in os.environ  # slower without a feature
    words = ["--check", options.check, "--slack", str(options.slack * (3 if is_masked else 1))]
    if options.watched:
        words += ["--watched", "--requests", "2000"]
    if options.check == "C10":
        is_full = os.environ.get("MOTET_TEST_SCALE") == "full"
        words += ["--seconds", os.environ.get("MOTET_TEST_SECONDS", "60" if is_full else "2")]
    result = subprocess.run([options.program, *words], timeout=LIMIT)
    if result.returncode != 0:
        sys.exit(result.returncode)
    if options.check == "C1":
        restart(options.program)
    if options.check == "C9" and not options.watched and not is_masked and shutil.which("strace"):
        futex_waits(options.program)


if __name__ == "__main__":
    main()
