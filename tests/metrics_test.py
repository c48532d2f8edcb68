#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What examples/metrics tells of its threads, on TCP and on a Unix socket. promtool, where it is
found, says whether a Prometheus server can read it.

usage: metrics_test.py METRICS
"""

import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from listening import Listening

# Some distance above what an answer takes on a busy machine.
PATIENCE = 20
SAMPLE = re.compile(r'([a-z_]+)\{([^}]*)\} (\S+)')


def fetched(peer):
    peer.settimeout(PATIENCE)
    peer.sendall(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
    answer = b"".join(iter(lambda: peer.recv(65_536), b"")).decode()
    head, _, text = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 OK\r\n"), head
    assert f"Content-Length: {len(text)}" in head, (head, len(text))
    return text


def samples(text):
    """{(name, labels): number}, each of which stands there once."""
    values = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        key = match[1], match[2]
        assert key not in values, line
        values[key] = float(match[3])
    return values


def of_all(values, name):
    return [number for (label, _), number in values.items() if label == name]


def can_be_read(text):
    if (promtool := shutil.which("promtool")) is not None:
        result = subprocess.run([promtool, "check", "metrics"], input=text, text=True,
                                capture_output=True, timeout=PATIENCE)
        assert result.returncode == 0, (result.stdout, result.stderr, text)


def over_tcp(program):
    with Listening(program) as server:
        def ask():
            with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as peer:
                return fetched(peer)

        old = samples(ask())
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            text = ask()
            new = samples(text)
            if any(of_all(new, "motet_queue_delay_seconds_count")):
                break
        can_be_read(text)
        # The server's thread, one that works, one that sleeps; and the sum of those that have ended.
        assert len(of_all(new, "motet_fibers")) == 3, text
        assert len(of_all(new, "motet_switches_total")) == 4, text
        assert max(of_all(new, "motet_fibers")) >= 10, text
        for name in ("motet_switches_total", "motet_polls_total", "motet_asleep_seconds_total"):
            assert sum(of_all(new, name)) > sum(of_all(old, name)), (name, text)
        assert any(of_all(new, "motet_queue_delay_seconds_count")), text
        assert any('verb="' in labels for _, labels in new), text
        server.process.send_signal(signal.SIGTERM)
        _, complaint = server.process.communicate(timeout=PATIENCE)
        assert (server.process.returncode, complaint) == (128 + signal.SIGTERM, ""), complaint


def over_a_unix_socket(program):
    with tempfile.TemporaryDirectory() as rest:
        path = f"{rest}/metrics"
        server = subprocess.Popen([program, path], text=True, stdout=subprocess.PIPE)
        try:
            assert server.stdout.readline().rstrip("\n").endswith(path)
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(path)
                assert of_all(samples(fetched(peer)), "motet_fibers")
        finally:
            server.kill()
            server.communicate()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for test in (over_tcp, over_a_unix_socket):
        test(sys.argv[1])
        print(f"ok: {test.__name__}")


if __name__ == "__main__":
    main()
