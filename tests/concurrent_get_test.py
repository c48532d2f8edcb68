#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Requests that are made at the same time, to servers that are slow, absent or silent.

usage: concurrent_get_test.py CONCURRENT-GET
"""

import http.server
import re
import socket
import subprocess
import sys
import threading
import time

DELAY = 0.3


class Slow(http.server.BaseHTTPRequestHandler):
    """Answers after a while, with as many bytes as the path says."""

    def do_GET(self):
        time.sleep(DELAY)
        body = b"x" * int(self.path.removeprefix("/"))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 50  # else a few requests at once wait a second for their connection


def got(program, *urls):
    """Returns: the exit status, the lines about the answers, how many answers in which time, and
    the lines about failures."""
    process = subprocess.run([program, *urls], capture_output=True, text=True, timeout=9, check=False)
    *answers, last = process.stdout.splitlines()
    count, duration = re.fullmatch(r"(\d+) answers in (\d+) ms", last).groups()
    return process.returncode, answers, (int(count), int(duration)), process.stderr.splitlines()


def takes_as_long_as_one(program, base):
    for sizes in ((5, 7), (1_000_000, 0, 1, 2, 3, 4, 5, 6)):
        urls = [f"{base}/{size}" for size in sizes]
        status, answers, (count, duration), failures = got(program, *urls)
        assert status == 0 and failures == [], failures
        assert answers == [f"{url}: HTTP/1.0 200 OK, {size} bytes"
                           for url, size in zip(urls, sizes)], answers
        assert count == len(urls)
        assert 300 <= duration < 550, duration


def answers_the_others(program, base):
    with socket.socket() as closed_socket, socket.create_server(("127.0.0.1", 0)) as odd:
        closed_socket.bind(("127.0.0.1", 0))  # nobody else takes the port, and nobody listens
        refused = f"http://127.0.0.1:{closed_socket.getsockname()[1]}"
        silent = f"http://127.0.0.1:{odd.getsockname()[1]}/"

        def hang_up():
            peer, _ = odd.accept()
            peer.recv(1_000)
            peer.close()

        threading.Thread(target=hang_up).start()
        status, answers, (count, duration), failures = got(program, refused, f"{base}/5", silent,
                                                           f"{base}/6", "ftp://127.0.0.1/")
    assert status == 1 and count == 2 and 300 <= duration < 550, (status, count, duration)
    assert [line.split(": ")[0] for line in answers] == [f"{base}/5", f"{base}/6"]
    assert len(failures) == 3, failures
    assert failures[0].startswith(f"{refused}: connect to 127.0.0.1"), failures
    assert "Connection refused" in failures[0], failures
    assert failures[1] == f"{silent}: no answer in HTTP", failures
    assert failures[2] == "ftp://127.0.0.1/: a URL begins with http://", failures


def gives_up(program, base):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        status, answers, (count, duration), failures = got(program, url, f"{base}/5")
    assert status == 1 and count == len(answers) == 1 and duration >= 2_000, (answers, duration)
    assert failures == [f"{url}: no answer in time"], failures


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = sys.argv[1]
    server = Server(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://localhost:{server.server_port}"
    takes_as_long_as_one(program, base)
    answers_the_others(program, base)
    gives_up(program, base)
    usage = subprocess.run([program], capture_output=True, text=True, timeout=5, check=False)
    assert usage.returncode == 2 and "usage" in usage.stderr, usage


if __name__ == "__main__":
    main()
