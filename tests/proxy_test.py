#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The proxy between curl or socat and servers of Python.

usage: proxy_test.py PROXY
"""

import concurrent.futures
import contextlib
import functools
import http.server
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from listening import Listening

GRACE = 3  # seconds, as in the proxy


class Proxy(Listening):
    """A proxy that runs."""

    def __init__(self, program, host, port, *idle):
        super().__init__(program, "0", host, str(port), *idle)

    def client(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=8)

    def ends(self, status, *complaints):
        _, output = self.process.communicate(timeout=8)
        assert self.process.returncode == status, (self.process.returncode, output)
        assert len(output.splitlines()) == len(complaints), output
        assert all(complaint in output for complaint in complaints), output


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def upstream(answer):
    """A server that calls `answer` with each connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(peer,), daemon=True).start()
        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def all_of(peer):
    return b"".join(iter(lambda: peer.recv(65_536), b""))


def answer_backwards(peer):
    with peer:
        peer.sendall(all_of(peer)[::-1])


def echo(peer):
    with peer, contextlib.suppress(OSError):
        while piece := peer.recv(65_536):
            peer.sendall(piece)


def serves_files(program, folder):
    (folder / "file").write_bytes(os.urandom(5_000_000))
    handler = functools.partial(Quiet, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Proxy(program, "localhost", server.server_port) as proxy:
        paths = [folder / f"copy{number}" for number in range(4)]
        for path in paths:
            subprocess.run(["curl", "-sSf", "-m", "8", "-o", path,
                            f"http://127.0.0.1:{proxy.port}/file"], check=True)
            assert path.read_bytes() == (folder / "file").read_bytes()
        proxy.process.send_signal(signal.SIGTERM)
        proxy.ends(128 + signal.SIGTERM)
    server.shutdown()
    server.server_close()


def passes_half_closes_on(program, _):
    data = os.urandom(1_000_000)
    with upstream(answer_backwards) as port, Proxy(program, "127.0.0.1", port) as proxy:
        if shutil.which("socat") is not None:
            result = subprocess.run(["socat", "-t8", "-", f"TCP:127.0.0.1:{proxy.port}"],
                                    input=data, capture_output=True, timeout=9, check=True)
            assert result.stdout == data[::-1]
        with proxy.client() as peer:
            peer.sendall(b"abc")
            peer.shutdown(socket.SHUT_WR)
            assert all_of(peer) == b"cba"
        proxy.process.send_signal(signal.SIGINT)
        proxy.ends(128 + signal.SIGINT)


def goes_on_without_an_upstream(program, _):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))  # nobody else takes the port, and nobody listens
        port = server.getsockname()[1]
        with Proxy(program, "127.0.0.1", port) as proxy:
            for _ in range(2):
                with proxy.client() as peer:
                    assert peer.recv(1) == b""
            server.listen()
            with proxy.client() as peer:
                peer.sendall(b"abc")
                peer.shutdown(socket.SHUT_WR)
                answer_backwards(server.accept()[0])
                assert all_of(peer) == b"cba"
            proxy.process.send_signal(signal.SIGTERM)
            refused = f"connect to 127.0.0.1 (127.0.0.1:{port}): Connection refused"
            proxy.ends(128 + signal.SIGTERM, refused, refused)


def drains(program, _):
    with upstream(echo) as port, Proxy(program, "127.0.0.1", port) as proxy:
        with proxy.client() as peer:
            peer.sendall(b"abc")
            assert peer.recv(3) == b"abc"
            proxy.process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + 2
            while time.monotonic() < deadline:
                try:
                    proxy.client().close()
                except (ConnectionRefusedError, ConnectionResetError):
                    break
                time.sleep(0.005)  # each is a connection that the proxy takes and must end
            else:
                raise AssertionError("a proxy that ends takes connections")
            data = os.urandom(1_000_000)
            threading.Thread(target=peer.sendall, args=(data,)).start()
            answer = bytearray()
            while len(answer) < len(data):
                piece = peer.recv(65_536)
                assert piece, "the connection ended early"
                answer += piece
            assert answer == data
            peer.shutdown(socket.SHUT_WR)
            assert all_of(peer) == b""
        proxy.ends(128 + signal.SIGTERM)


def cuts_who_does_not_end(program, _):
    with upstream(echo) as port:
        for second in (None, signal.SIGINT):
            with Proxy(program, "127.0.0.1", port) as proxy, proxy.client() as peer:
                peer.sendall(b"abc")
                assert peer.recv(3) == b"abc"
                begin = time.monotonic()
                proxy.process.send_signal(signal.SIGTERM)
                if second is None:
                    proxy.ends(128 + signal.SIGTERM, "connections cut at the end: 1")
                    assert time.monotonic() - begin > GRACE - 0.1
                else:
                    time.sleep(0.2)
                    proxy.process.send_signal(second)
                    proxy.ends(128 + signal.SIGTERM)
                    assert time.monotonic() - begin < GRACE - 0.1
                assert peer.recv(1) == b"", "a connection outlives the proxy"


def cuts_who_is_idle(program, _):
    with upstream(echo) as port, Proxy(program, "127.0.0.1", port, "1") as proxy:
        with proxy.client() as talks, proxy.client() as silent:
            begin = time.monotonic()
            for _ in range(15):
                talks.sendall(b"abc")
                assert talks.recv(3) == b"abc"
                time.sleep(0.1)
            assert silent.recv(1) == b""
            talks.sendall(b"abc")
            assert talks.recv(3) == b"abc"
            assert talks.recv(1) == b""
            assert 2.4 < time.monotonic() - begin < 6
        proxy.process.send_signal(signal.SIGTERM)
        proxy.ends(128 + signal.SIGTERM, "a connection was cut", "timed out")


def says_what_is_wrong(program, _):
    for words, text in ((["0"], "usage"), (["0", "localhost", "80", "1", "2"], "usage"),
                        (["65536", "localhost", "80"], "65536"),
                        (["0", "localhost", "0"], "'0' is no number"),
                        (["0", "localhost", "80", "soon"], "soon")):
        process = subprocess.run([program, *words], capture_output=True, text=True, timeout=5,
                                 check=False)
        assert process.returncode == 1 and text in process.stderr, process


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as name:
        checks = (serves_files, passes_half_closes_on, goes_on_without_an_upstream, drains,
                  cuts_who_does_not_end, cuts_who_is_idle, says_what_is_wrong)
        # At the same time, because some of them wait for seconds.
        with concurrent.futures.ThreadPoolExecutor(len(checks)) as pool:
            for future in [pool.submit(check, sys.argv[1], pathlib.Path(name)) for check in checks]:
                future.result()


if __name__ == "__main__":
    main()
