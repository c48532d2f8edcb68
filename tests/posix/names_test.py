#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when a library does not define just the functions that a table of docs/unmodified.md lists.

usage: names_test.py PAGE HEADING LIBRARY | --self-test
"""

import re
import subprocess
import sys

# Names with two underscores are glibc's other names for a function.
ALIAS = re.compile(r"^__(\w+?)(_chk|_2)?$")


def documented(page, heading):
    """The functions in the first column of the table under a heading."""
    table = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def defined(listing):
    """The C functions in an output of `nm -D -P --defined-only`."""
    symbols = [line.split()[:2] for line in listing.splitlines()]
    return {name.split("@")[0] for name, kind in symbols if kind in "TW" and not name.startswith(("_Z", "motet_"))}


def problems(page, heading, listing):
    names = documented(page, heading)
    functions = defined(listing)
    aliases = {name for name in functions - names if ALIAS.match(name)}
    for name in sorted(names - functions):
        yield f"{name} is documented, but not defined"
    for name in sorted(functions - aliases - names):
        yield f"{name} is defined, but not documented"
    for name in sorted(aliases):
        if ALIAS.match(name).group(1) not in names:
            yield f"{name} is another name of a function that is not documented"


def self_test():
    page = "# Page\n\n## Functions\n\n| functions | in a fiber |\n|-|-|\n| `read` `poll` | wait, unlike `write` |\n\n## Other\n| `x` | |\n"
    listing = "read T 0 1\npoll W 0 1\n__read_chk T 0 1\n_ZN5motet3runE T 0 1\ntable D 0 8\nmotet_call T 0 1\n"
    assert not list(problems(page, "Functions", listing))
    for more in ("write T 0 1\n", "__write T 0 1\n", "__write_chk T 0 1\n"):
        assert len(list(problems(page, "Functions", listing + more))) == 1, more
    assert len(list(problems(page, "Functions", listing.replace("poll W", "poll D")))) == 1


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        page = file.read()
    listing = subprocess.run(["nm", "-D", "-P", "--defined-only", sys.argv[3]], check=True, capture_output=True, text=True).stdout
    complaints = list(problems(page, sys.argv[2], listing))
    print(*complaints, sep="\n")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
