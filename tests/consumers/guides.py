#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The programs of the guides compile. What they take for granted is in the folder guides, a file for each
guide, in which a line `@2` stands for the second program. Those of the tutorial and the cookbook also
run: snippets.py.

usage: guides.py DOCS COMPILER [FLAG...]
"""

import pathlib
import re
import subprocess
import sys

PROGRAM = re.compile(r"^```cpp\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
RUN = {"tutorial", "cookbook"}


def completed(world, programs):
    numbers = [int(number) for number in re.findall(r"^\s*@(\d+)$", world, re.MULTILINE)]
    assert sorted(numbers) == list(range(1, len(programs) + 1)), \
        f"{len(programs)} programs, of which are used: {numbers}"
    return re.sub(r"^\s*@(\d+)$", lambda place: programs[int(place[1]) - 1], world, flags=re.MULTILINE)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    worlds = pathlib.Path(__file__).parent / "guides"
    failure = False
    for page in sorted(pathlib.Path(sys.argv[1]).glob("*.md")):
        programs = PROGRAM.findall(page.read_text())
        if not programs or page.stem in RUN:
            continue
        text = completed((worlds / f"{page.stem}.cpp.in").read_text(), programs)
        result = subprocess.run([*sys.argv[2:], "-fsyntax-only", "-x", "c++", "-"], input=text, text=True, capture_output=True)
        if result.returncode != 0:
            failure = True
            print(f"{page.name}:\n{result.stderr}")
    sys.exit(failure)


if __name__ == "__main__":
    main()
