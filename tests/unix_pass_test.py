#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files whose descriptors are passed from one process to another, and strangers who pass none.

usage: unix_pass_test.py UNIX-PASS
"""

import array
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile


class Receiver:
    """A unix_pass that listens."""

    def __init__(self, program, path, **options):
        self.path = str(path)
        self.process = subprocess.Popen([program, "receive", self.path], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, **options)
        first = self.process.stderr.readline()
        assert first == f"waiting on unix:{path}\n".encode(), first

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def ends(self, status, output=b"", complaint=b""):
        stdout, stderr = self.process.communicate(timeout=5)
        assert self.process.returncode == status, (self.process.returncode, stderr)
        assert stdout == output, (len(stdout), len(output))
        assert complaint in stderr and (complaint or not stderr), stderr
        assert not os.path.exists(self.path), "the path outlives the receiver"


def send(program, path, file, **options):
    return subprocess.run([program, "send", path, file], capture_output=True, timeout=5,
                          check=False, **options)


def passes_files(program, folder):
    for size in (0, 1, 65_536, 3_000_000):
        content = os.urandom(size)
        (folder / "file").write_bytes(content)
        with Receiver(program, folder / "socket") as receiver:
            result = send(program, receiver.path, folder / "file")
            assert result.returncode == 0 and result.stderr == b"", result
            receiver.ends(0, content)


def passes_what_has_no_name(program, folder):
    """Only the sender can open the pipe that is its stdin."""
    content = os.urandom(50_000)  # which a pipe has room for
    with Receiver(program, folder / "socket") as receiver:
        sender = subprocess.Popen([program, "send", receiver.path, "/proc/self/fd/0"],
                                  stdin=subprocess.PIPE)
        assert sender.wait(5) == 0
        os.write(sender.stdin.fileno(), content[:10])
        # The receiver has the read end: without it, this write would fail.
        with sender.stdin as pipe:
            pipe.write(content[10:])
        receiver.ends(0, content)


def takes_it_from_a_stranger(program, folder):
    (folder / "file").write_bytes(b"from Python")
    with Receiver(program, folder / "socket") as receiver:
        with socket.socket(socket.AF_UNIX) as peer, open(folder / "file", "rb") as file:
            peer.connect(receiver.path)
            rights = array.array("i", [file.fileno()])
            peer.sendmsg([b"!"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
            receiver.ends(0, b"from Python")


def refuses_who_sends_no_descriptor(program, folder):
    with Receiver(program, folder / "socket") as receiver:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(receiver.path)
            peer.sendall(b"a letter")
            receiver.ends(1, complaint=b"data instead of a descriptor")
    with Receiver(program, folder / "socket") as receiver:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(receiver.path)
        receiver.ends(1, complaint=b"ended without sending a descriptor")
    if shutil.which("socat") is not None:
        with Receiver(program, folder / "socket") as receiver:
            subprocess.run(["socat", "-u", "-", f"UNIX-CONNECT:{receiver.path}"],
                           input=b"a letter", timeout=5, check=True)
            receiver.ends(1, complaint=b"data instead of a descriptor")


def says_what_is_wrong(program, folder):
    with Receiver(program, folder / "socket") as receiver:
        second = subprocess.run([program, "receive", receiver.path], capture_output=True,
                                timeout=5, check=False)
        assert second.returncode == 1 and receiver.path.encode() in second.stderr, second
        result = send(program, receiver.path, folder / "missing")
        assert result.returncode == 1 and b"missing" in result.stderr, result
        result = send(program, receiver.path, folder)  # can be opened, but not be read
        assert result.returncode == 0, result
        receiver.ends(1, complaint=b"directory")
    result = send(program, folder / "nobody", "/dev/null")
    assert result.returncode == 1 and b"nobody" in result.stderr, result
    for words in ([], ["receive"], ["send", "socket"], ["give", "socket", "file"]):
        process = subprocess.run([program, *words], capture_output=True, timeout=5, check=False)
        assert process.returncode == 2 and b"usage" in process.stderr, process


def leaves_no_path_behind(program, folder):
    for number in (signal.SIGTERM, signal.SIGINT):
        with Receiver(program, folder / "socket") as receiver:
            receiver.process.send_signal(number)
            receiver.ends(128 + number)
    with Receiver(program, folder / "socket") as receiver:
        with socket.socket(socket.AF_UNIX) as silent:
            silent.connect(receiver.path)
            receiver.process.send_signal(signal.SIGTERM)
            receiver.ends(128 + signal.SIGTERM)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as name:
        for check in (passes_files, passes_what_has_no_name, takes_it_from_a_stranger,
                      refuses_who_sends_no_descriptor, says_what_is_wrong, leaves_no_path_behind):
            check(sys.argv[1], pathlib.Path(name))


if __name__ == "__main__":
    main()
