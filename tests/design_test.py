#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when DESIGN.md, or a room's README, names a file or a function that is not there.

In DESIGN.md `path/file.cpp:function` names both; in the README of a room a path begins in the room, in runtime/, in
runtime/include/motet/, or in backends/.

usage: design_test.py SOURCE-ROOT
"""

import pathlib
import re
import sys

NAMED = re.compile(r"`([\w./]+\.(?:cpp|hpp))(?::(\w+))?`")


def places(root, page):
    return [root, page.parent, root / "runtime", root / "runtime/include", root / "runtime/include/motet",
            root / "backends"]


def problems(root, page):
    """What the page names that is not there, a sentence each."""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for file, function in NAMED.findall(line):
            where = f"{page.relative_to(root)}:{number}"
            found = [place / file for place in places(root, page) if (place / file).is_file()]
            if not found:
                yield f"{where}: there is no {file}"
            elif function and not re.search(rf"\b{function}\s*\(", found[0].read_text()):
                yield f"{where}: {file} has no function {function}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = [root / "DESIGN.md", *sorted((root / "runtime").glob("*/README.md"))]
    walks = sum(bool(function) for _, function in NAMED.findall((root / "DESIGN.md").read_text()))
    found = [problem for page in pages for problem in problems(root, page)]
    if walks < 30:
        found.append(f"DESIGN.md: only {walks} functions are named")
    print(*found, sep="\n")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
