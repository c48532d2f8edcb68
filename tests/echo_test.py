#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The echo server, as its clients and its operator see it.

usage: echo_test.py ECHO-SERVER
"""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading


def start(program, *arguments):
    server = subprocess.Popen([program, "--port", "0", *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    assert line.startswith("listening on 127.0.0.1:"), line
    return server, int(line.rsplit(":", 1)[1])


def echo(port, message, keep=None):
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    sender = threading.Thread(target=connection.sendall, args=(message,))
    sender.start()
    data = bytearray()
    while len(data) < len(message):
        piece = connection.recv(65536)
        assert piece, "the connection ended early"
        data += piece
    sender.join()
    assert data == message
    if keep is not None:
        keep.append(connection)
    else:
        connection.close()


def reset(port):
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    connection.sendall(b"half a mess")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def ends_gracefully(program, number):
    server, port = start(program)
    open_connections = []
    for size in (1, 64, 16384, 1_000_000):
        echo(port, os.urandom(size), open_connections)
    reset(port)
    echo(port, b"still there?")
    server.send_signal(number)
    _, complaint = server.communicate(timeout=20)
    assert server.returncode == 0, (server.returncode, complaint)
    for connection in open_connections:
        assert connection.recv(1) == b"", "a connection outlives the server"


def refuses(program, *arguments, text):
    process = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=20)
    assert process.returncode == 1 and text in process.stderr, (arguments, process)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = sys.argv[1]
    ends_gracefully(program, signal.SIGTERM)
    ends_gracefully(program, signal.SIGINT)
    refuses(program, "--backend", "steam", text="steam")
    refuses(program, "--port", "65536", text="--port")
    refuses(program, "--port", text="--port")


if __name__ == "__main__":
    main()
