# SPDX-License-Identifier: MIT
"""The pages of the site: a page for each public header, a page that lists them, and the menu."""

import html
import re

from families import FAMILIES


def path_of(header):
    """Of the page that tells of a header."""
    return f"api/{header.removeprefix('motet/').removesuffix('.hpp').replace('/', '-')}.md"


def badge(text):
    """What a function is at a glance, and in words where that depends on something."""
    kind = "no" if text.startswith("Not a switchpoint") else "yes"
    plain = {"yes": "Switchpoint.", "no": "Not a switchpoint."}[kind]
    label = plain.rstrip(".").lower()
    badge = f'<span class="switch {kind}">{label}</span>'
    return badge if text == plain else f"{badge} {escape(text)}"


def escape(text):
    """For Markdown: what is between back-ticks stays."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else html.escape(part, quote=False).replace("*", r"\*").replace("_", r"\_")
                   for part in parts)


def as_heading(name):
    """The list of contents takes no escapes."""
    return html.escape(name, quote=False).replace("*", "&#42;")


def entry_text(entry, level):
    yield f"{'#' * level} {as_heading(entry.name)}\n"
    code = "\n".join(entry.code)
    yield f"```cpp\n{code}\n```\n"
    if entry.switches:
        yield badge(entry.switches) + "\n"
    yield from (escape(text) + "\n" for text in entry.text)
    for heading, text in entry.sections.items():
        yield f"**{heading}** {escape(text)}\n"
    for member in entry.members:
        yield from entry_text(member, min(level + 1, 6))


def header_page(header):
    yield f"# {as_heading(header.name.removeprefix('motet/').removesuffix('.hpp'))}\n"
    yield f"```cpp\n#include <{header.name}>\n```\n"
    yield escape(header.intro) + "\n"
    for entry in header.entries:
        yield from entry_text(entry, 2)


def index_page(headers):
    yield "# The interface\n"
    yield ("A page for each header, made of the comments in it. A function that is a <span class=\"switch yes\">switchpoint</span> may "
           "hand the thread to another fiber; one that is <span class=\"switch no\">not a switchpoint</span> never does.\n")
    for title, names in FAMILIES.values():
        yield f"## {title}\n"
        yield "".join(f"* [{name}]({path_of(name).removeprefix('api/')}): {escape(headers[name].intro)}\n" for name in names)


def write(place, reader):
    """Writes the pages into `place`. Returns: what has been read, by the headers' names."""
    headers = {name: reader.read(name) for _, names in FAMILIES.values() for name in names}
    (place / "api").mkdir()
    (place / "api/index.md").write_text("\n".join(index_page(headers)))
    for name, header in headers.items():
        (place / path_of(name)).write_text("\n".join(header_page(header)))
    return headers


def menu():
    """The part of mkdocs.yml that lists the pages of headers."""
    yield "      - api/index.md"
    for title, names in FAMILIES.values():
        yield f"      - {title}:"
        yield from (f"          - {name}: {path_of(name)}" for name in names)
