#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when DESIGN.md, or a room's README, names a file, a function, a type or a test that is not there.

In DESIGN.md `path/file.cpp:function` names both; in the README of a room a path begins in the room, in runtime/, in
runtime/include/motet/, or in backends/. A row of the glossary ends in a type, or a function, and its file.

usage: design_test.py SOURCE-ROOT
"""

import pathlib
import re
import sys

NAMED = re.compile(r"`([\w./]+\.(?:cpp|hpp))(?::(\w+))?`")
WORD = re.compile(r"^\| ([^|]+) \| [^|]+ \| `(\w+)`[^|]* \| `([\w./]+)` \|$", re.M)
MOST_WORDS = 40
ROW = re.compile(r"^\| (\w+) \| `[^`]+` \| ([\w/, ]+) \|$", re.M)


def places(root, page):
    return [root, page.parent, root / "runtime", root / "runtime/include", root / "runtime/include/motet",
            root / "backends"]


def problems(root, page):
    """What the page names that is not there, a sentence each."""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for file, function in NAMED.findall(line):
            location = f"{page.relative_to(root)}:{number}"
            files = [place / file for place in places(root, page) if (place / file).is_file()]
            if not files:
                yield f"{location}: there is no {file}"
            elif function and not re.search(rf"\b{function}\s*\(", files[0].read_text()):
                yield f"{location}: {file} has no function {function}"


def missing_types(root, text):
    """The types in the glossary that are not there, a sentence each."""
    words = WORD.findall(text)
    if not 20 <= len(words) <= MOST_WORDS:
        yield f"DESIGN.md: the glossary has {len(words)} words; it should have 20 to {MOST_WORDS}"
    for word, name, file in words:
        files = [place / file for place in places(root, root / "DESIGN.md") if (place / file).is_file()]
        declared = rf"\b(class|struct)( \[\[\w+\]\])? {name}\b(?!;)|\b{name}\("
        if files and not re.search(declared, files[0].read_text()):
            yield f"DESIGN.md: {file} declares no {name}, of {word}"


def missing_tests(root):
    """The tests in DESIGN.md's table of rooms that are not there, a sentence each."""
    for room, names in ROW.findall((root / "DESIGN.md").read_text()):
        for name in names.split(", "):
            stem = root / "tests" / name if "/" in name else root / "tests" / room / name
            if not any(stem.with_name(stem.name + end).is_file() for end in ("_test.cpp", "_test.py")):
                yield f"DESIGN.md: the room {room} has no test {name}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = [root / "DESIGN.md", *sorted((root / "runtime").glob("*/README.md"))]
    walks = sum(bool(function) for _, function in NAMED.findall((root / "DESIGN.md").read_text()))
    complaints = [problem for page in pages for problem in problems(root, page)]
    complaints += missing_types(root, (root / "DESIGN.md").read_text())
    complaints += missing_tests(root)
    if len(ROW.findall((root / "DESIGN.md").read_text())) != 16:
        complaints.append("DESIGN.md: the table of the rooms has not sixteen rows")
    if walks < 30:
        complaints.append(f"DESIGN.md: only {walks} functions are named")
    print(*complaints, sep="\n")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
