#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The UDP echo server, as socat and as plain sockets see it.

usage: udp_echo_test.py UDP-ECHO
"""

import os
import shutil
import signal
import socket
import subprocess
import sys

LARGEST = 65_507


def start(program, *arguments):
    server = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    assert line.startswith("listening on 127.0.0.1:"), line
    return server, int(line.rsplit(":", 1)[1])


def client(port):
    connected = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    connected.settimeout(5)
    connected.connect(("127.0.0.1", port))
    return connected


def answers_socat(port):
    if shutil.which("socat") is None:
        return
    data = os.urandom(1000)
    result = subprocess.run(["socat", "-t1", "-", f"UDP:127.0.0.1:{port}"], input=data,
                            capture_output=True, timeout=5, check=True)
    assert result.stdout == data, result


def answers_each_size(port):
    with client(port) as peer:
        for size in (1, 0, 1_472, 1_473, LARGEST, 0, 9_000):
            data = os.urandom(size)
            peer.send(data)
            assert peer.recv(LARGEST + 1) == data, size


def answers_each_sender(port, senders=10, count=15):
    """More than one batch, and fewer than a socket has room for: about 270, whatever their size."""
    peers = [client(port) for _ in range(senders)]
    for number in range(count):
        for name, peer in enumerate(peers):
            peer.send(b"%d of %d" % (number, name))
    for name, peer in enumerate(peers):
        assert [peer.recv(100) for _ in range(count)] == [b"%d of %d" % (number, name)
                                                          for number in range(count)]
        peer.close()


def survives_a_sender_that_is_gone(port):
    with client(port) as socket_:
        socket_.send(b"nobody waits for the answer")
    with client(port) as peer:
        peer.send(b"still there?")
        assert peer.recv(100) == b"still there?"


def answers_what_has_come_and_ends(server, port, number):
    with client(port) as peer:
        server.send_signal(signal.SIGSTOP)
        sizes = range(1, 21)
        for size in sizes:
            peer.send(b"x" * size)
        server.send_signal(signal.SIGCONT)
        assert [len(peer.recv(100)) for _ in sizes] == list(sizes)
    server.send_signal(number)
    _, complaint = server.communicate(timeout=5)
    assert server.returncode == 128 + number, (server.returncode, complaint)
    assert complaint == "", complaint


def refuses(program, *arguments, status, text):
    process = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=5)
    assert process.returncode == status and text in process.stderr, (arguments, process)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = sys.argv[1]
    for number in (signal.SIGTERM, signal.SIGINT):
        server, port = start(program)
        try:
            answers_socat(port)
            answers_each_size(port)
            for _ in range(3):
                answers_each_sender(port)
            survives_a_sender_that_is_gone(port)
            refuses(program, str(port), status=1, text=f"127.0.0.1:{port}")
            answers_what_has_come_and_ends(server, port, number)
        finally:
            server.kill()
            server.wait()
    refuses(program, "65536", status=2, text="usage")
    refuses(program, "1", "2", status=2, text="usage")


if __name__ == "__main__":
    main()
