#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures one thing of one echo server, whose messages are of 64 bytes, and prints it as a number.

usage: echo_round.py DIRECTORY SERVER WHAT CONNECTIONS MICROSECONDS
  DIRECTORY     where the benchmarks were built
  SERVER        a program in it; motet's own takes the backend that MOTET_BACKEND names
  WHAT          closed: microseconds a request, the next follows the answer
                cpu: microseconds of the server's processor, the kernel's share included
                p999_at_50, p999_at_80: the slowest of 1,000 requests, in microseconds from when it was
                due, at that share, in percent, of what a bare loop on epoll can take
                calls, instructions: system calls, and user-space instructions, a request
  MICROSECONDS  how long the load lasts

Server and load have a processor each if there are two. Of what is counted, the difference of a long
and a short load counts: neither the start of a server nor its end does.
"""

import os
import pathlib
import re
import sys
import tempfile
import time

from compare_echo import Server, cores_apart, load

REFERENCE = "raw_epoll_echo"


def command_of(directory, program):
    backend = ["--backend", os.environ["MOTET_BACKEND"]] if program.endswith("echo_server") else []
    return [str(directory / program), *backend]


def loaded(directory, program, connections, seconds, *extra_arguments):
    of_server, of_load = cores_apart()
    with Server(program, command_of(directory, program), of_server) as server:
        watched = ("--server-pid", str(server.process.pid))
        return load(directory / "echo_load", server, connections, seconds, of_load, *watched, *extra_arguments)


def closed(directory, program, connections, seconds):
    return 1e6 / loaded(directory, program, connections, seconds)["requests_per_second"]


def cpu(directory, program, connections, seconds):
    result = loaded(directory, program, connections, seconds)
    return result["server_cpu_us"] / result["requests"]


def p999(share):
    def measure(directory, program, connections, seconds):
        capacity = loaded(directory, REFERENCE, connections, seconds / 3)["requests_per_second"]
        rate = f"{share * capacity:.0f}"
        return loaded(directory, program, connections, seconds, "--rate", rate)["p999_us"]
    return measure


def text_of(path, pattern):
    """What a tool has written of a server that ended just now."""
    for _ in range(100):
        match = re.search(pattern, pathlib.Path(path).read_text(), re.MULTILINE)
        if match:
            return int(match[1].replace(",", ""))
        time.sleep(0.1)
    sys.exit(f"no {pattern} in {path}")


def counted(tool, pattern):
    """tool(FILE): a command that has the server run, and writes to FILE what it has counted."""
    def once(directory, program, connections, seconds):
        with tempfile.TemporaryDirectory() as rest:
            of_server, of_load = cores_apart()
            command = [*tool(f"{rest}/counted"), *command_of(directory, program)]
            with Server(program, command, of_server) as server:
                count = load(directory / "echo_load", server, connections, seconds, of_load,
                             "--warmup", "0")["requests"]
            return text_of(f"{rest}/counted", pattern), count

    def measure(directory, program, connections, seconds):
        for _ in range(5):  # a traced server is quick or slow as the tracer happens to be
            low, few = once(directory, program, connections, seconds / 5)
            high, many = once(directory, program, connections, seconds)
            if many > 2 * few:
                return (high - low) / (many - few)
        sys.exit(f"{program}: no more requests in a longer load")
    return measure


WHAT = {
    "closed": closed,
    "cpu": cpu,
    "p999_at_50": p999(0.5),
    "p999_at_80": p999(0.8),
    # -D: the process that is started, and told to end, is the server
    "calls": counted(lambda file: ["strace", "-D", "-f", "-c", "-o", file],
                     r"^\s*100\.00\s+\S+\s+\d+\s+(\d+)\s.*total$"),
    "instructions": counted(lambda file: ["valgrind", "--tool=callgrind", f"--log-file={file}",
                                          f"--callgrind-out-file={file}.out"],
                            r"Collected : (\d+)"),
}


def main():
    if len(sys.argv) != 6 or sys.argv[3] not in WHAT:
        sys.exit(__doc__)
    directory, program, name, connections, length = sys.argv[1:]
    figure = WHAT[name](pathlib.Path(directory), program, int(connections), int(length) / 1e6)
    print(f"{figure:.3f}")


if __name__ == "__main__":
    main()
