#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Commands that the job runner runs, and ends.

usage: job_runner_test.py JOB-RUNNER
"""

import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time


def ran(program, commands, *arguments):
    """Returns: the exit status, and for each job how it ended and what it wrote."""
    result = subprocess.run([program, *arguments], input="\n".join(commands), text=True, timeout=9,
                            capture_output=True, check=False)
    assert result.stderr == "", result.stderr
    jobs = {}
    for line in result.stdout.splitlines():
        if header := re.fullmatch(r"job (\d+): (.*?): (.*)", line):
            number = int(header[1])
            assert number not in jobs and header[3] == [c for c in commands if c][number - 1], line
            jobs[number] = (header[2], [])
        else:
            jobs[number][1].append(line)
    return result.returncode, jobs


def alive(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def appears(path):
    """Returns: the number in the file, as soon as it is there."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().endswith("\n"):
            return int(path.read_text())
        time.sleep(0.01)
    raise AssertionError(f"{path} was never written")


def all_end(pids):
    """SIGKILL is sent to a group, but not waited for."""
    deadline = time.monotonic() + 2
    while any(map(alive, pids)):
        assert time.monotonic() < deadline, [pid for pid in pids if alive(pid)]
        time.sleep(0.01)


def tells_how_each_ended(program, folder):
    commands = ["echo out; echo err >&2", "exit 3", "kill -9 $$", "", "printf 'no newline'",
                "no_such_command", "cat", "seq 100000", "true"]
    status, jobs = ran(program, commands)
    assert status == 1
    assert jobs[1] == ("exit 0", ["  out: out", "  err: err"])
    assert jobs[2] == ("exit 3", [])
    assert jobs[3] == ("signal 9", [])
    assert jobs[4] == ("exit 0", ["  out: no newline"])
    assert jobs[5][0] == "exit 127" and "no_such_command" in jobs[5][1][0]
    assert jobs[6] == ("exit 0", []), "a command has the stdin of the job runner"
    assert jobs[7] == ("exit 0", [f"  out: {number}" for number in range(1, 100_001)])
    assert jobs[8] == ("exit 0", []) and len(jobs) == 8
    assert ran(program, ["true", "true"]) == (0, {1: ("exit 0", []), 2: ("exit 0", [])})
    assert ran(program, []) == (0, {})
    (folder / "jobs").write_text("echo from a file")
    from_file = ran(program, ["echo from a file"], folder / "jobs")
    assert from_file == (0, {1: ("exit 0", ["  out: from a file"])})


def ends_what_is_too_slow_or_too_long(program, folder):
    begin = time.monotonic()
    status, jobs = ran(program, [
        f"echo $$ > {folder}/a; sleep 60 & echo $! > {folder}/b; wait",
        f"trap '' TERM; echo $$ > {folder}/c; while :; do sleep 0.1; done",
        "yes",
        "sleep 0.1; echo soon enough",
        f"sleep 60 & echo $! > {folder}/d; exit 0",  # its output is open as long as the sleep is
    ], "--limit", "1")
    assert status == 1 and time.monotonic() - begin < 5
    assert jobs == {1: ("ended, too slow", []), 2: ("ended, too slow", []),
                    3: ("ended, wrote too much", []), 4: ("exit 0", ["  out: soon enough"]),
                    5: ("ended, too slow", [])}
    all_end([appears(folder / name) for name in "abcd"])


def runs_so_many_at_once(program, _):
    for limit in (1, 3):
        status, jobs = ran(program, ["date +%s%N; sleep 0.15; date +%s%N"] * 6,
                           "--at-once", str(limit))
        assert status == 0
        spans = [[int(line.split()[1]) for line in lines] for status, lines in jobs.values()]
        overlaps = [sum(begin <= start < end for begin, end in spans) for start, _ in spans]
        assert max(overlaps) <= limit and (max(overlaps) > 1) == (limit > 1), overlaps


def a_signal_ends_all(program, folder):
    for number in (signal.SIGINT, signal.SIGTERM):
        (folder / "jobs").write_text("\n".join([
            f"echo $$ > {folder}/a; sleep 60 & echo $! > {folder}/b; wait",
            f"trap '' INT TERM; echo $$ > {folder}/c; while :; do sleep 0.1; done",
            f"touch {folder}/third",
        ]))
        for name in "abc":
            (folder / name).unlink(missing_ok=True)
        runner = subprocess.Popen([program, "--at-once", "2", folder / "jobs"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        pids = [appears(folder / name) for name in "abc"]
        assert all(map(alive, pids))
        runner.send_signal(number)
        assert runner.communicate(timeout=5) == (b"", b"")
        assert runner.returncode == 128 + number, runner.returncode
        all_end(pids)
        assert not (folder / "third").exists(), "a command began after the signal"


def a_signal_ends_the_wait_for_commands(program, _):
    runner = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    runner.stdin.write(b"echo one\n")
    runner.stdin.flush()
    assert runner.stdout.readline() == b"job 1: exit 0: echo one\n"
    runner.send_signal(signal.SIGINT)
    assert runner.wait(5) == 130
    runner.communicate()


def says_what_is_wrong(program, folder):
    for words, text in ((["--at-once", "0"], "--at-once"), (["--limit", "soon"], "--limit"),
                        (["--limit"], "--limit"), (["--fast"], "usage"), (["a", "b"], "usage"),
                        ([folder / "missing"], "missing")):
        process = subprocess.run([program, *words], capture_output=True, text=True, timeout=5,
                                 check=False)
        assert process.returncode == 2 and text in process.stderr, process


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for check in (tells_how_each_ended, ends_what_is_too_slow_or_too_long, runs_so_many_at_once,
                  a_signal_ends_all, a_signal_ends_the_wait_for_commands, says_what_is_wrong):
        with tempfile.TemporaryDirectory() as name:
            check(sys.argv[1], pathlib.Path(name))


if __name__ == "__main__":
    main()
