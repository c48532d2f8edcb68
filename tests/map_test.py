#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when tests/README.md does not name a test, or names one that is not there.

usage: map_test.py SOURCE-ROOT
"""

import fnmatch
import pathlib
import re
import sys

ROW = re.compile(r"^\|([^|]*)\|([^|]*)\|[^|]*\|$", re.M)
NAME = re.compile(r"`([\w*.]+)`")


def named_in(text):
    """The tests of each room that the table of rooms names, perhaps by a pattern."""
    rooms, room = {}, None
    for first, names in ROW.findall(text):
        room = (NAME.findall(first) or [room])[0]
        rooms.setdefault(room, []).extend(NAME.findall(names))
    return rooms


def tests_in(folder):
    return sorted({path.stem.removesuffix("_test") for path in folder.glob("*_test.*") if path.suffix in (".cpp", ".py")})


def problems(root):
    tests = root / "tests"
    text = (tests / "README.md").read_text()
    named = named_in(text)
    for folder in sorted(path for path in tests.iterdir() if path.is_dir()):
        there, names = tests_in(folder), named.get(folder.name, [])
        for test in there:
            if not any(fnmatch.fnmatch(test, name) for name in names):
                yield f"tests/README.md: the row of {folder.name} does not name {test}"
        for name in names:
            if not fnmatch.filter(there, name):
                yield f"tests/README.md: {folder.name} has no test {name}"
    for test in sorted(path.name for path in tests.glob("*_test.py")):
        if f"`{test}`" not in text:
            yield f"tests/README.md: {test} is not named"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = list(problems(pathlib.Path(sys.argv[1]).resolve()))
    print(*found, sep="\n")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
