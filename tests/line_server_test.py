#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The line server's answers, and restarts of it while clients are at work: no line is half answered,
and no connection that was answered once is reset.

usage: line_server_test.py LINE-SERVER [--restarts N]
  --restarts N  how often it is restarted under load; otherwise 5 times, or 100 times with
                MOTET_TEST_SCALE=full or MOTET_FULL_COUNTS set
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time

from listening import Listening

LONGEST = 4_096
FAREWELL = 2  # seconds, as in the server


class Server(Listening):
    """A line server that runs."""

    def __init__(self, program, port=0):
        super().__init__(program, str(port))

    def get(self, number):
        self.process.send_signal(number)

    def client(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)

    def ends(self, number):
        _, complaint = self.process.communicate(timeout=8)
        assert self.process.returncode == 128 + number, (self.process.returncode, complaint)
        assert complaint == "", complaint


def all_of(peer):
    return b"".join(iter(lambda: peer.recv(65_536), b""))


def ask(peer, line):
    peer.sendall(line)
    assert peer.recv(LONGEST + 1) == line.upper()


def answers_lines(program):
    with Server(program) as server:
        if shutil.which("socat") is not None:
            result = subprocess.run(["socat", "-t5", "-", f"TCP:127.0.0.1:{server.port}"],
                                    input=b"one\ntwo\n\nno line feed", capture_output=True,
                                    timeout=8, check=True)
            assert result.stdout == b"ONE\nTWO\n\n", result
        with server.client() as peer:
            for part in (b"in ", b"parts", b"\nan"):
                peer.sendall(part)
                time.sleep(0.01)
            peer.sendall(b"d on\n")
            peer.shutdown(socket.SHUT_WR)
            assert all_of(peer) == b"IN PARTS\nAND ON\n"
        for size, good in ((LONGEST, True), (LONGEST + 1, False), (1_000_000, False)):
            with server.client() as peer:
                peer.sendall(b"before\n" + b"x" * size + b"\nbehind\n")
                peer.shutdown(socket.SHUT_WR)
                answer = (b"X" * size + b"\nBEHIND\n" if good
                          else b"error: a line has at most 4096 bytes\n")
                assert all_of(peer) == b"BEFORE\n" + answer, size
        server.get(signal.SIGINT)
        server.ends(signal.SIGINT)


def answers_what_has_arrived(program):
    """The server is stopped while the lines arrive: so it sees them and the signal together."""
    many = b"".join(b"line %d\n" % number for number in range(2_000))
    for text, answer in ((b"one\n", b"ONE\n"), (b"one\ntwo\n\nthr", b"ONE\nTWO\n\n"), (b"", b""),
                         (b"part", b""), (many, many.upper()),
                         (b"x" * LONGEST + b"\n" + b"y" * LONGEST, b"X" * LONGEST + b"\n"),
                         (b"one\n" + b"x" * 5_000,
                          b"ONE\nerror: a line has at most 4096 bytes\n")):
        with Server(program) as server, server.client() as peer, server.client() as idle:
            ask(peer, b"begin\n")
            ask(idle, b"begin\n")
            server.get(signal.SIGSTOP)
            peer.sendall(text)
            server.get(signal.SIGTERM)
            server.get(signal.SIGCONT)
            assert all_of(peer) == answer, (text[:20], answer[:20])
            assert all_of(idle) == b""
            peer.sendall(b"too late\n" * 1_000)  # is read and dropped: not answered, and no reset
            time.sleep(0.02)
            assert peer.recv(1) == b""
            peer.sendall(b"too late\n")
            assert server.process.poll() is None, "it did not wait for the clients' ends"
            for client in (peer, idle):
                client.shutdown(socket.SHUT_WR)
            server.ends(signal.SIGTERM)


def waits_for_nobody_for_long(program):
    with Server(program) as server, server.client() as peer:
        ask(peer, b"begin\n")
        begin = time.monotonic()
        server.get(signal.SIGTERM)
        assert all_of(peer) == b""
        assert time.monotonic() - begin < 1, "an idle connection is not closed at once"
        server.ends(signal.SIGTERM)
        assert FAREWELL - 0.1 < time.monotonic() - begin < FAREWELL + 2


class Load:
    """Clients that send and reconnect; what they see that was not promised is in `failures`."""

    def __init__(self, port):
        self.port = port
        self.over = threading.Event()
        self.failures = []
        self.answered = 0
        self.ended = 0  # connections that have been answered, and were ended by the server
        self.unanswered = 0  # lines that were sent on them, and not answered
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.talk, args=(lines,))
                        for lines in (1, 1, 1, 1, 20, 500)]
        for thread in self.threads:
            thread.start()

    def talk(self, lines):
        dice = random.Random(lines)
        while not self.over.is_set():
            with socket.socket() as peer:
                peer.settimeout(5)
                answered = False
                try:
                    peer.connect(("127.0.0.1", self.port))
                    while not self.over.is_set() and dice.random() > 0.001 * lines:
                        text = b"".join(b"request %d\n" % dice.randrange(10**9)
                                        for _ in range(lines))
                        if not self.exchange(peer, text, answered):
                            break
                        answered = True
                except OSError as error:
                    if answered:
                        self.failures.append(repr(error))
                    else:
                        time.sleep(0.005)

    def exchange(self, peer, text, answered):
        """Returns: whether all lines were answered."""
        peer.sendall(text)
        answer = bytearray()
        while len(answer) < len(text) and (piece := peer.recv(65_536)):
            answer += piece
        if answered and (not text.upper().startswith(answer) or answer[-1:] not in (b"", b"\n")):
            self.failures.append(f"{bytes(answer[-40:])} is no answer, or part of one")
        missing_count = text.count(b"\n") - answer.count(b"\n")
        with self.lock:
            self.answered += answer.count(b"\n")
            if answered and missing_count > 0:
                self.ended += 1
                self.unanswered += missing_count
        return missing_count == 0

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


def restarts_under_load(program, restarts):
    with socket.socket() as placeholder:
        # It never listens, but keeps everybody else, and the clients, from taking the port as
        # their own between two servers.
        placeholder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        placeholder.bind(("127.0.0.1", 0))
        load = Load(placeholder.getsockname()[1])
        with contextlib.ExitStack() as stack:
            stack.callback(load.end)
            for _ in range(restarts):
                with Server(program, load.port) as server:
                    count = load.answered
                    deadline = time.monotonic() + 5
                    while load.answered < count + 1_000:
                        assert time.monotonic() < deadline, "the clients are not answered"
                        time.sleep(0.01)
                    time.sleep(random.random() * 0.1)
                    server.get(signal.SIGTERM)
                    server.ends(signal.SIGTERM)
    print(f"{restarts} restarts: {load.answered} lines answered, {load.ended} connections ended "
          f"with {load.unanswered} lines unanswered, {len(load.failures)} failures")
    assert load.failures == [], load.failures[:10]
    assert load.ended >= restarts, "hardly a client was there when a server ended"


def main():
    arguments = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    arguments.add_argument("program")
    full = "MOTET_FULL_COUNTS" in os.environ or os.environ.get("MOTET_TEST_SCALE") == "full"
    arguments.add_argument("--restarts", type=int, default=100 if full else 5)
    options = arguments.parse_args()
    answers_lines(options.program)
    answers_what_has_arrived(options.program)
    waits_for_nobody_for_long(options.program)
    restarts_under_load(options.program, options.restarts)


if __name__ == "__main__":
    main()
