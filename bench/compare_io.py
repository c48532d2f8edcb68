#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files, idle connections, datagrams and proxies beside the bare loop, or program, that does the same.

What is compared takes turns, so that both see the same machine; each figure is a median. Nothing
else should run. socat and haproxy are left out where they are not installed.

usage: compare_io.py BUILD-DIRECTORY [--quick]
"""

import argparse
import contextlib
import json
import pathlib
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

HAPROXY = """global
  nbthread 1
defaults
  mode tcp
  timeout connect 5s
  timeout client 60s
  timeout server 60s
listen all
  bind 127.0.0.1:{port}
  server one 127.0.0.1:{upstream}
"""


class Bench:
    def __init__(self, arguments):
        self.build = arguments.build
        self.rounds = 1 if arguments.quick else 9
        self.seconds = 0.1 if arguments.quick else 1
        self.megabytes = 16 if arguments.quick else 1024
        self.names = 1_000 if arguments.quick else 100_000
        self.idle = 100 if arguments.quick else 10_000

    def program(self, name):
        return str(self.build / name)

    def bench(self, name):
        return self.program(f"bench/{name}")

    def turns(self, subjects, rounds=None):
        """The median of each subject, a call that returns a number."""
        figures = {name: [] for name in subjects}
        for _ in range(rounds or self.rounds):
            for name, measure in subjects.items():
                figures[name].append(measure())
        return {name: statistics.median(values) for name, values in figures.items()}


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def show(title, unit, medians, reference):
    print(f"\n{title}, {unit}")
    for name, value in medians.items():
        print(f"  {name:<28}{value:>12,.1f}{value / medians[reference]:>8.2f}")


@contextlib.contextmanager
def server(*command):
    """A program that prints its port as the last word of its first line."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True) as process:
        try:
            yield process.stdout.readline().rsplit(":", 1)[1].strip()
        finally:
            process.terminate()


def reads(bench, folder):
    file = folder / "reads"
    with file.open("wb") as stream:
        for _ in range(bench.megabytes // 4):
            stream.write(bytes(1 << 20))
    for title, words in (("4 KiB from memory, 32 at a time", []),
                         ("4 KiB from the disk, 32 at a time", ["direct"])):
        def ran(name, words=words):
            return float(output_of(bench.bench(name), file, str(bench.seconds / 5), *words))
        medians = bench.turns({"raw ring": lambda: ran("raw_reads"),
                               "motet": lambda: ran("motet_reads")}, bench.rounds * 5)
        show(title, "reads/s", medians, "raw ring")


def idle_connections(bench, _):
    """One connection plays ping-pong, alone and beside idle ones."""
    servers = {"raw epoll": bench.bench("raw_epoll_echo"), "raw ring": bench.bench("raw_uring_echo"),
               "motet": bench.program("examples/echo_server")}

    def echoes(program, idle):
        with server(program, "--port", "0") as port:
            output = output_of(bench.bench("echo_load"), "--port", port, "--connections",
                               str(idle + 1), "--idle", str(idle), "--seconds", str(bench.seconds),
                               "--json")
            return json.loads(output)["requests_per_second"]
    for idle in (0, bench.idle):
        medians = bench.turns({name: lambda program=program: echoes(program, idle)
                               for name, program in servers.items()})
        show(f"ping-pong beside {idle} idle connections", "echoes/s", medians, "raw epoll")


def datagrams(bench, _):
    servers = {"raw recvmmsg": [bench.bench("raw_udp_echo"), "mmsg"],
               "raw ring": [bench.bench("raw_udp_echo"), "ring"],
               "motet": [bench.program("examples/udp_echo")]}

    def echoes(command):
        with server(*command) as port:
            return float(output_of(bench.bench("udp_load"), "--port", port,
                                   "--seconds", str(bench.seconds)))
    medians = bench.turns({name: lambda command=command: echoes(command)
                           for name, command in servers.items()})
    show("UDP echo, 8 sockets, 16 on the way each", "echoes/s", medians, "raw recvmmsg")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


@contextlib.contextmanager
def other_proxy(command, port):
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            time.sleep(0.5)
            yield port
        finally:
            process.terminate()


def proxies(bench, folder, upstream):
    yield "motet", lambda: server(bench.program("examples/proxy"), "0", "127.0.0.1", upstream)
    if shutil.which("socat"):
        def socat():  # forks for each connection
            port = free_port()
            return other_proxy(["socat", f"TCP-LISTEN:{port},fork,reuseaddr,bind=127.0.0.1,nodelay",
                                f"TCP:127.0.0.1:{upstream},nodelay"], port)
        yield "socat", socat
    if shutil.which("haproxy"):
        def haproxy():
            port = free_port()
            (folder / "haproxy.cfg").write_text(HAPROXY.format(port=port, upstream=upstream))
            return other_proxy(["haproxy", "-f", str(folder / "haproxy.cfg")], port)
        yield "haproxy", haproxy


def proxied(bench, folder):
    """Echoes through a proxy: small ones, and large ones, which it splices."""
    with server(bench.bench("raw_epoll_echo"), "--port", "0") as upstream:
        ways = dict(proxies(bench, folder, upstream))

        def requests(way, size):
            with way() as port:
                output = output_of(bench.bench("echo_load"), "--port", port, "--connections", "50",
                                   "--seconds", str(bench.seconds), "--size", size, "--json")
                return json.loads(output)["requests_per_second"]
        for size in ("64", "65536"):
            medians = bench.turns({name: lambda way=way: requests(way, size)
                                   for name, way in ways.items()})
            show(f"echoes of {size} bytes through a proxy", "requests/s", medians, "motet")


def seconds_of(*command):
    begin = time.monotonic()
    subprocess.run(command, check=True)
    return (time.monotonic() - begin) * 1000


def copies(bench, folder):
    source, target = folder / "source", folder / "target"
    with source.open("wb") as stream:
        for _ in range(bench.megabytes):
            stream.write(bytes(1 << 20))
    delays = []

    def motet(*words):
        duration, delay = map(float, output_of(bench.bench("copy_bench"), *map(str, words)).split())
        delays.append(delay)
        return duration

    medians = bench.turns({"cp": lambda: seconds_of("cp", source, target),
                           "motet": lambda: motet("copy", source, target)})
    show(f"a copy of {bench.megabytes} MiB", "ms", medians, "cp")
    print(f"  a ticker of 1 ms meanwhile was late by {max(delays):.2f} ms at most")
    delays.clear()
    motet("sync", target)
    print(f"beside an fsync of 256 MiB: {max(delays):.2f} ms at most")
    delays.clear()
    many = folder / "many"
    many.mkdir()
    for number in range(bench.names):
        (many / f"name{number}").touch()
    motet("list", many)
    print(f"beside a list of {bench.names} names: {max(delays):.2f} ms at most")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    bench = Bench(parser.parse_args())
    with tempfile.TemporaryDirectory(dir=bench.build) as name:
        for comparison in (reads, idle_connections, datagrams, proxied, copies):
            comparison(bench, pathlib.Path(name))


if __name__ == "__main__":
    main()
