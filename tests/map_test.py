#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when tests/README.md does not name a test, or names one that is not there; and when the title of a
test does not begin with the name of what it tests.

usage: map_test.py SOURCE-ROOT
"""

import fnmatch
import pathlib
import re
import sys

ROW = re.compile(r"^\|([^|]*)\|([^|]*)\|[^|]*\|$", re.M)
NAME = re.compile(r"`([\w*.]+)`")
TITLE = re.compile(r'TEST_CASE\(\s*"([^"]*)"')


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
    names_by_folder = named_in(text)
    for folder in sorted(path for path in tests.iterdir() if path.is_dir()):
        stems, names = tests_in(folder), names_by_folder.get(folder.name, [])
        for test in stems:
            if not any(fnmatch.fnmatch(test, name) for name in names):
                yield f"tests/README.md: the row of {folder.name} does not name {test}"
        for name in names:
            if not fnmatch.filter(stems, name):
                yield f"tests/README.md: {folder.name} has no test {name}"
    for test in sorted(path.name for path in tests.glob("*_test.py")):
        if f"`{test}`" not in text:
            yield f"tests/README.md: {test} is not named"


def names_of_code(root):
    """Every identifier of the headers of the library and of the explorer, and of the backends, and the stems of
    their sources."""
    words = {"backtrace", "fork"}  # of the C library
    for path in [*(root / "runtime").rglob("*.?pp"), *(root / "backends").glob("*.?pp"),
                 *(root / "tests/explorer").glob("*.hpp")]:
        words.add(path.stem)
        if path.suffix == ".hpp" or path.parent.name == "backends":
            code = re.sub(r'"(?:\\.|[^"\\\n])*"', "", re.sub(r"//[^\n]*", "", path.read_text()))
            words |= set(re.findall(r"[A-Za-z_]\w+", code))
    return words


def anonymous_titles(root):
    names = names_of_code(root)
    for path in sorted((root / "tests").rglob("*_test.cpp")):
        for title in TITLE.findall(path.read_text()):
            first = re.match(r"[\w:~]*", title)[0].rstrip(":").rpartition("::")[2].lstrip("~")
            if first not in names:
                yield f"{path.relative_to(root)}: does not begin with the name of what it tests: {title}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]).resolve()
    complaints = [*problems(root), *anonymous_titles(root)]
    print(*complaints, sep="\n")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
