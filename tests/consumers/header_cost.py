#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when <motet/motet.hpp> takes too long to compile: more than 0.7 s and, as machines differ,
more than 1.4 times what the standard and system headers that it includes take by themselves.

usage: header_cost.py INCLUDE-DIRECTORY COMPILER...
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import time

LIMIT = 0.7
OWN_SHARE = 1.4
ROUNDS = 7

INCLUDE = re.compile(r"^#include <([^>]+)>", re.MULTILINE)


def others(include):
    """The headers of others that motet.hpp includes, itself or by another of motet's."""
    seen, found = set(), set()
    left = ["motet/motet.hpp"]
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        for inner in INCLUDE.findall((include / name).read_text()):
            if inner.startswith("motet/"):
                left.append(inner)
            else:
                found.add(inner)
    return sorted(found)


def seconds(command, text):
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
        file.write(text)
        file.flush()
        begin = time.monotonic()
        subprocess.run([*command, file.name], check=True)
        return time.monotonic() - begin


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    include = pathlib.Path(sys.argv[1])
    command = [*sys.argv[2:], "-std=c++20", "-O2", "-fsyntax-only", f"-I{include}"]
    files = {
        "an empty file": "",
        "the headers of others": "".join(f"#include <{name}>\n" for name in others(include)),
        "motet/motet.hpp": "#include <motet/motet.hpp>\n",
    }
    # In turn, so that what else the machine does falls on all of them.
    rounds = [[seconds(command, text) for text in files.values()] for _ in range(ROUNDS)]
    empty, foreign, motet = map(min, zip(*rounds))
    print("compile time, best of", ROUNDS, "of", " ".join(command[:-1]))
    for name, best in zip(files, (empty, foreign, motet)):
        print(f"  {name}: {best:.2f} s")
    sys.exit(0 if motet <= max(LIMIT, OWN_SHARE * foreign) else 1)


if __name__ == "__main__":
    main()
