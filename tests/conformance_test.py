#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when a row of docs/http_conformance.md names a test that does not exist, or a test of a requirement
that is not met, or no test without saying why.

usage: conformance_test.py SOURCE-ROOT | --self-test
"""

import pathlib
import re
import sys
import tempfile

TITLE = re.compile(r'\bTEST_CASE\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
NAMED = re.compile(r'`(\w+)`: "([^"]+)"')
COLUMNS = 5
NOT_MET = "**not met**"
WITHOUT_TEST = ("does not apply", "the application's duty", NOT_MET)


def titles(tests):
    """Of each test file, by its stem."""
    result = {}
    for path in tests.rglob("*_test.cpp"):
        cases = TITLE.findall(path.read_text())
        result[path.stem] = ["".join(re.findall(r'"((?:[^"\\]|\\.)*)"', case)).replace('\\"', '"') for case in cases]
    return result


def rows(page):
    """The cells of each row, with the number of its line; not those of the headings."""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("|") and not re.match(r"\|(-|\s*section\b)", line):
            yield number, [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def problems_of(cells, titles_by_file):
    if len(cells) != COLUMNS or not all(cells):
        return [f"not {COLUMNS} cells"]
    state, test = cells[3:]
    if test == "-":
        return [] if any(reason in state for reason in WITHOUT_TEST) else ["no test, and no reason for that"]
    names = NAMED.findall(test)
    if "; ".join(f'`{stem}`: "{part}"' for stem, part in names) != test:
        return [f"not the name of a test: {test}"]
    problems = ["a test of what is not met"] if NOT_MET in state else []
    for stem, part in names:
        if stem not in titles_by_file:
            problems.append(f"there is no {stem}.cpp")
        elif not any(part in title for title in titles_by_file[stem]):
            problems.append(f'{stem} has no test "{part}"')
    return problems


def check(root):
    """Returns: what is wrong; that there are no rows, too."""
    page = root / "docs/http_conformance.md"
    titles_by_file = titles(root / "tests")
    all_rows = list(rows(page))
    complaints = [f"{page.name}:{number}: {problem}"
                  for number, cells in all_rows for problem in problems_of(cells, titles_by_file)]
    return complaints if all_rows else [f"{page.name}: no rows"]


def self_test():
    valid_row = '| 1 | do | both | it does | `a_test`: "a title"; `a_test`: "in two" |'
    invalid_rows = ['| 1 | do | both | it does | `b_test`: "a title" |', '| 1 | do | both | it does | `a_test`: "other" |',
           '| 1 | do | both | it does | a_test |', "| 1 | do | both | it does | - |", "| 1 | do | both | it does |",
           '| 1 | do | both | **not met** | `a_test`: "a title" |', ""]
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for directory in ("docs", "tests"):
            (root / directory).mkdir()
        (root / "tests/a_test.cpp").write_text('TEST_CASE("a title") {}\nTEST_CASE("one in "\n  "two lines") {}\n')
        for row in [valid_row, *invalid_rows]:
            (root / "docs/http_conformance.md").write_text(f"| section | a |\n|---|---|\n{row}\n")
            complaints = check(root)
            if bool(complaints) == (row == valid_row):
                sys.exit(f"of {row!r} it says {complaints}")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    complaints = check(pathlib.Path(sys.argv[1]))
    print(*complaints, sep="\n")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
