#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when <motet/motet.hpp> takes too long to compile: more than 0.7 s and, as machines differ,
more than 1.3 times what the standard and system headers that it includes take by themselves.

A machine that others use as well is now fast, now slow, for seconds: hence the processor's time, and
the middle of the ratios of what was measured one after the other.

usage: header_cost.py INCLUDE-DIRECTORY COMPILER...
"""

import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile

LIMIT = 0.7
OWN_SHARE = 1.3
ROUNDS = 45

INCLUDE = re.compile(r"^#include <([^>]+)>", re.MULTILINE)


def others(include):
    """The headers of others that motet.hpp includes, itself or by another of motet's."""
    paths, headers = set(), set()
    queue = ["motet/motet.hpp"]
    while queue:
        name = queue.pop()
        if name in paths:
            continue
        paths.add(name)
        for inner in INCLUDE.findall((include / name).read_text()):
            if inner.startswith("motet/"):
                queue.append(inner)
            else:
                headers.add(inner)
    return sorted(headers)


def time_used():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def seconds(command, text):
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
        file.write(text)
        file.flush()
        begin = time_used()
        subprocess.run([*command, file.name], check=True)
        return time_used() - begin


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    include = pathlib.Path(sys.argv[1])
    command = [*sys.argv[2:], "-std=c++20", "-O2", "-fsyntax-only", f"-I{include}"]
    source = "".join(f"#include <{name}>\n" for name in others(include))
    rounds = [
        (seconds(command, source), seconds(command, "#include <motet/motet.hpp>\n"))
        for _ in range(ROUNDS)
    ]
    best = min(motet for _, motet in rounds)
    share = statistics.median(motet / reference for reference, motet in rounds)
    print(f"{ROUNDS} rounds of {' '.join(command)}, of the processor's time")
    print(f"  motet/motet.hpp, at best: {best:.2f} s (limit {LIMIT} s)")
    print(f"  over the headers of others, in the middle: {share:.2f} (limit {OWN_SHARE})")
    sys.exit(0 if best <= LIMIT or share <= OWN_SHARE else 1)


if __name__ == "__main__":
    main()
