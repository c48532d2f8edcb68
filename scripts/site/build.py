#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes of the public headers the pages of the site's interface, its menu, and the manual.

usage: build.py SOURCE-ROOT PLACE
PLACE has a folder `pages`; mkdocs.yml and a folder `man` are made beside it.
"""

import pathlib
import sys

import families
import headers
import man
import pages


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    root, place = map(pathlib.Path, sys.argv[1:])
    include = [(root / folder / "motet").resolve() for folder in ("runtime/include", "runtime/boost_fiber/include")]
    families.check_complete(include)
    count = pages.write(place / "pages", headers.Reader(include, place))
    source = pathlib.Path(__file__).parent
    settings = (source / "mkdocs.yml").read_text()
    (place / "mkdocs.yml").write_text(settings.replace("      @api@", "\n".join(pages.menu())))
    (place / "man").mkdir()
    man.write(place / "man", count, (root / "docs/overview.md").read_text(), (root / "VERSION").read_text().strip())


if __name__ == "__main__":
    main()
