#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when the site would not work without the net, or a link within it leads nowhere; and when a page
of the interface shows more of a header than a declaration, or few pages say what is a switchpoint.

usage: check.py SITE
"""

import html.parser
import pathlib
import re
import sys
import urllib.parse

# What a browser fetches by itself.
FETCHED = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src")}


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.fetched = set(), [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        for name in ("href", "src"):
            if not values.get(name) or values.get("rel") in ("canonical", "prev", "next"):
                continue
            if (tag, name) in FETCHED:
                self.fetched.append(values[name])
            self.links.append(values[name])


def problems(site):
    pages = {path: Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        location = path.relative_to(site)
        if path.name == "404.html":
            continue
        for link in page.fetched:
            if "://" in link or link.startswith("//"):
                yield f"{location}: fetches {link}"
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{location}: {link} leads nowhere"
            elif parts.fragment and target in pages and parts.fragment not in pages[target].anchors:
                yield f"{location}: {link} leads to no heading"


def shown_too_much(site):
    """A declaration has no statement in it, and nothing private."""
    for path in sorted((site.parent / "pages/api").glob("*.md")):
        for code in re.findall(r"^```cpp\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL):
            if re.search(r"\breturn\b|\bprivate:|^ *: \w+_\(", re.sub(r"//.*", "", code), re.MULTILINE) or \
                    code.count("{") != code.count("}"):
                yield f"{path.name}: {code}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    site = pathlib.Path(sys.argv[1]).resolve()
    complaints = [*problems(site), *shown_too_much(site)]
    print(*complaints, sep="\n")
    badges = sum(path.read_text().count('class="switch ') for path in site.glob("api/*.html"))
    print(f"{len(list(site.rglob('*.html')))} pages, {badges} badges")
    sys.exit(1 if complaints or badges < 500 else 0)


if __name__ == "__main__":
    main()
