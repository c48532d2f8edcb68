#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when a page links to a file, or to a heading, that is not there. Links to other places are not
tried.

usage: links_test.py SOURCE-ROOT
"""

import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page):
    """As GitHub names the headings of a page."""
    for heading in re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text()), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def broken(page):
    for link in LINK.findall(CODE.sub("", page.read_text())):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    pages = [*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("examples/**/*.md"), *root.glob("runtime/*/README.md")]
    complaints = [f"{page.relative_to(root)}: {link}" for page in pages for link in broken(page)]
    print(*complaints, sep="\n")
    sys.exit(1 if complaints or not pages else 0)


if __name__ == "__main__":
    main()
