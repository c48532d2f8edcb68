#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when a documented public function does not say whether it is a switchpoint, and where a
heading of a comment is not the first word of its line.

A comment may serve the overloads that follow it. What is private or in namespace detail need not.

usage: docs_test.py SOURCE-ROOT
"""

import pathlib
import re
import sys

# Words of the seam and plain errors: called by backends, or trivially no switchpoints.
EXEMPT = {"backend.hpp", "errors.hpp", "options.hpp", "clock.hpp", "serve_options.hpp",
          "client_options.hpp"}
FUNCTION = re.compile(r"^(?!.*\b(class|struct|enum|using|namespace)\b)[^=;{]*\w\s*\(")


def undecided(path):
    lines = path.read_text().splitlines()
    comment, start, private, detail = [], 0, False, False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text in ("private:", "protected:"):
            private = True
        elif text in ("public:", "};"):
            private = False
        elif text == "namespace detail {" or text.startswith("}  // namespace detail"):
            detail = text.startswith("namespace")
        if private or detail:
            continue
        if text.startswith("///"):
            if not comment:
                start = number
            comment.append(text)
            continue
        if comment and (text.startswith("template") or text.startswith("requires")):
            continue
        if comment and FUNCTION.match(text) and "witchpoint" not in " ".join(comment):
            yield f"{path.name}:{start}: does not say whether it is a switchpoint: {text}"
        comment = []


def hidden_headings(path):
    """A formatter that wraps an overlong line may draw the next ones up."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if re.search(r"///\s*\S.*\b(Returns|Throws|Source):", line):
            yield f"{path.name}:{number}: a heading in the middle of a line: {line.strip()}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folders = [pathlib.Path(sys.argv[1]) / folder for folder in ("runtime/include", "runtime/boost_fiber/include")]
    public = [path for folder in folders for path in sorted(folder.rglob("*.hpp"))]
    headers = [path for path in public if "detail" not in path.parts and path.name not in EXEMPT]
    complaints = [problem for header in headers
                  for problem in undecided(header)]
    complaints += [problem for header in public
                   for problem in hidden_headings(header)]
    print(*complaints, sep="\n")
    sys.exit(1 if complaints or not headers else 0)


if __name__ == "__main__":
    main()
