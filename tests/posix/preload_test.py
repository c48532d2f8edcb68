#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Preloads motet-posix and motet-posix-locks into a program with fibers, and into programs without, also with their main
function as a fiber.

usage: preload_test.py LIBRARY LOCKS PROGRAM
"""

import os
import subprocess
import sys

LIBRARY, LOCKS, PROGRAM = sys.argv[1:]
# Sockets, pipes, select(2), poll(2), sleeps, threads and child processes.
PYTHON = """
import os, select, socket, subprocess, threading, time
a, b = socket.socketpair()
threading.Timer(0.02, lambda: b.sendall(b"late")).start()
print(select.select([a], [], [], 5)[0] == [a], a.recv(9))
a.settimeout(0.02)
try:
    a.recv(1)
except TimeoutError as error:
    print(error)
poll = select.poll()
poll.register(a, select.POLLIN)
print(poll.poll(10))
print(subprocess.run(["sh", "-c", "sleep 0.02; echo out; exit 3"], capture_output=True))
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    time.sleep(0.02)
    os.write(writer, b"from the child")
    os._exit(7)
print(os.read(reader, 99), os.waitpid(child, 0)[1])
print(input())
"""
# Programs without motet, and their input.
OTHERS = [
    (["cat"], "one\ntwo\n"),
    (["sh", "-c", "sleep 0.01; echo $((6 * 7)) | tr 4 5; exit 3"], ""),
    ([sys.executable, "-c", PYTHON], "line\n"),
    (["dd", "if=/dev/zero", "bs=100000", "count=3", "status=none"], ""),
    (["sh", "-c", "kill -TERM $$"], ""),
]


def outcome(command, variables, text=""):
    result = subprocess.run(command, input=text, env=os.environ | variables, capture_output=True, text=True, timeout=50)
    return result.returncode, result.stdout, result.stderr


def main():
    preloaded = {"LD_PRELOAD": LIBRARY}
    both = {"LD_PRELOAD": f"{LOCKS}:{LIBRARY}"}
    cases = [({}, "one after the other"), (preloaded, "together"), (both, "together"), (preloaded | {"MOTET_POSIX": "off"}, "one after the other"),
             (preloaded | {"MOTET_POSIX": "on"}, "together")]
    failures = 0
    for variables, expected in cases:
        actual = outcome([PROGRAM], variables)
        if actual != (0, expected + "\n", ""):
            print(f"with {variables}: {actual} instead of {expected!r}")
            failures += 1
    for command, text in OTHERS:
        without = outcome(command, {}, text)
        for variables in (preloaded, preloaded | {"MOTET_POSIX_MAIN": "1"}, both, both | {"MOTET_POSIX_MAIN": "1"}):
            actual = outcome(command, variables, text)
            if actual != without:
                print(f"{command} with {variables}: {actual} instead of {without}")
                failures += 1
    sys.exit(1 if failures else 0)


main()
