#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tail_follow beside tail -F, on a log that is written, rotated and cut.

usage: tail_follow_test.py TAIL-FOLLOW
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time


class Follower:
    """A program whose output is gathered."""

    def __init__(self, *command, cwd=None):
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=self.output, stderr=subprocess.PIPE, cwd=cwd)

    def wrote(self):
        return os.pread(self.output.fileno(), 10_000_000, 0)

    def shows(self, expectation):
        limit = time.monotonic() + 10
        while self.wrote() != expectation:
            assert time.monotonic() < limit, (self.wrote()[-100:], expectation[-100:])
            time.sleep(0.005)

    def has_watch(self):
        for entry in pathlib.Path(f"/proc/{self.process.pid}/fdinfo").iterdir():
            with contextlib.suppress(FileNotFoundError):  # it may be closed meanwhile
                if b"inotify wd:" in entry.read_bytes():
                    return True
        return False

    def watches(self):
        limit = time.monotonic() + 10
        while not self.has_watch():
            assert time.monotonic() < limit, "it watches nothing"
            time.sleep(0.005)

    def ended(self, number):
        self.process.send_signal(number)
        _, complaint = self.process.communicate(timeout=10)
        return self.process.returncode, complaint


def follows(program, folder):
    log = folder / "log"
    follower = Follower(program, log)
    world = Follower("tail", "-n", "+1", "-s", "0.01", "-F", log)
    time.sleep(0.1)
    expectation = b""
    before_world = 0  # bytes of that, which the other program has not seen

    def shows(text):
        nonlocal expectation
        expectation += text
        follower.shows(expectation)
        world.shows(expectation[before_world:])

    log.write_bytes(b"begin\n")
    shows(b"begin\n")
    with log.open("ab", buffering=0) as writer:
        for number in range(50):
            writer.write(b"line %d\n" % number)
        shows(b"".join(b"line %d\n" % number for number in range(50)))
        (folder / "other").write_bytes(b"not ours")
        # tail(1) may miss what is added to a file that has no name any more: it begins anew.
        world.ended(signal.SIGTERM)
        log.rename(folder / "log.1")
        writer.write(b"to the old file\n")
        log.write_bytes(b"new\n")
        expectation += b"to the old file\nnew\n"
        follower.shows(expectation)
    world = Follower("tail", "-n", "+1", "-s", "0.01", "-F", log)
    time.sleep(0.1)
    before_world = len(expectation) - len(b"new\n")
    shows(b"")
    os.truncate(log, 0)
    time.sleep(0.1)  # the world looks at times only
    with log.open("ab") as writer:
        writer.write(b"cut\n")
    shows(b"cut\n")
    log.unlink()
    log.write_bytes(b"again\n")
    shows(b"again\n")
    data = os.urandom(1_000_000)
    with log.open("ab") as writer:
        writer.write(data)
    shows(data)
    assert follower.ended(signal.SIGTERM) == (143, b"")
    world.ended(signal.SIGTERM)


def begins_with_what_is_there(program, folder):
    (folder / "there").write_bytes(b"there\n")
    follower = Follower(program, "there", cwd=folder)
    follower.shows(b"there\n")
    with (folder / "there").open("ab") as writer:
        writer.write(b"more\n")
    follower.shows(b"there\nmore\n")
    assert follower.ended(signal.SIGINT) == (130, b"")


def ends_with_the_directory(program, folder):
    inner = folder / "inner"
    inner.mkdir()
    follower = Follower(program, inner / "log")
    follower.watches()
    inner.rmdir()
    _, complaint = follower.process.communicate(timeout=10)
    assert follower.process.returncode == 0 and b"inner is gone" in complaint, complaint
    missing = Follower(program, folder / "missing" / "log")
    _, complaint = missing.process.communicate(timeout=10)
    assert missing.process.returncode == 1 and b"missing" in complaint, complaint


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = os.path.abspath(sys.argv[1])
    for check in (follows, begins_with_what_is_there, ends_with_the_directory):
        with tempfile.TemporaryDirectory() as name:
            check(program, pathlib.Path(name))


if __name__ == "__main__":
    main()
