#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Talks to the server of examples/starter, and shuts it down.

usage: starter.py PROGRAM
"""

import signal
import socket
import subprocess
import sys


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with subprocess.Popen([sys.argv[1], "0"], stdout=subprocess.PIPE, text=True) as server:
        try:
            greeting = server.stdout.readline()
            assert greeting.startswith("listening on 127.0.0.1:"), greeting
            with socket.create_connection(("127.0.0.1", int(greeting.rsplit(":", 1)[1])), timeout=10) as client:
                client.sendall(b"Ada\n")
                assert client.makefile().readline() == "Hello, Ada!\n"
                server.send_signal(signal.SIGINT)
            assert server.wait(timeout=10) == 130, server.returncode
        finally:
            server.kill()


main()
