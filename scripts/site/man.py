# SPDX-License-Identifier: MIT
"""Pages of the manual, section 7: motet, of docs/overview.md, and one for each family of headers."""

import re

from families import FAMILIES


def escape(text, code=False):
    text = re.sub(r"^([.'])", r"\&\1", text.replace("\\", r"\e"), flags=re.MULTILINE)
    return text.replace("-", r"\-").replace("'", r"\(aq") if code else text


def prose(text):
    """Back-ticks are bold; of stars and links only the text stays."""
    parts = re.split(r"`([^`]*)`", re.sub(r"\[([^]]*)\]\([^)]*\.md[^)]*\)", r"\1", text))
    plain = [escape(re.sub(r"\*+(\S[^*]*)\*+", r"\1", part)) for part in parts[::2]]
    code = [r"\fB" + escape(part, code=True) + r"\fR" for part in parts[1::2]]
    return "".join(part for pair in zip(plain, [*code, ""]) for part in pair)


def paragraph(text):
    return [".PP", re.sub(r"^([.'])", r"\&\1", prose(text))]


def page(name, summary, version, sections, pages):
    yield f'.TH {name.upper()} 7 "" "motet {version}" "motet"'
    yield ".SH NAME"
    yield f"{name} \\- {summary}"
    for title, lines in sections:
        yield f".SH {title}"
        yield from lines
    yield ".SH SEE ALSO"
    yield ",\n".join(f".BR {name} (7)" for name in pages)


def declarations(codes):
    yield ".EX"
    yield from (escape(code, code=True) for code in codes)
    yield ".EE"


def entry_lines(entry, prefix=""):
    yield f'.SS "{escape(prefix + entry.name, code=True)}"'
    yield from declarations(entry.code)
    if entry.switches:
        yield from paragraph(entry.switches)
    for text in entry.text:
        yield from paragraph(text)
    for heading, text in entry.sections.items():
        yield ".TP"
        yield f".B {heading}"
        yield re.sub(r"^([.'])", r"\&\1", prose(text))
    for member in entry.members:
        yield from entry_lines(member, f"{prefix}{entry.name}::")


def family_sections(names, headers):
    yield "SYNOPSIS", list(declarations(f"#include <{headers[name].name}>" for name in names))
    for name in names:
        header = headers[name]
        if header.entries:
            yield f'"{name.upper()}"', [prose(header.intro), *(line for entry in header.entries for line in entry_lines(entry))]


def overview_sections(text):
    """Of a page whose paragraphs are points of a list that begin with a name."""
    intro, *points = re.split(r"^\* ", text.partition("\n")[2].strip(), flags=re.MULTILINE)
    lines = [prose(" ".join(intro.split()))]
    for point in points:
        name, _, rest = " ".join(point.split()).removeprefix("**").partition("**")
        lines += [".TP", f'.B "{escape(name.rstrip("."))}"', re.sub(r"^([.'])", r"\&\1", prose(rest.strip()))]
    return [("DESCRIPTION", lines)]


def write(place, headers, overview, version):
    names = {family: f"motet-{family}" for family in FAMILIES}
    pages = {"motet": ("fibers for C++20 on Linux", overview_sections(overview))}
    for family, (title, members) in FAMILIES.items():
        pages[names[family]] = (title[0].lower() + title[1:] if title not in ("TLS", "HTTP") else title,
                                family_sections(members, headers))
    for name, (summary, sections) in pages.items():
        related = [page for page in pages if page != name]
        (place / f"{name}.7").write_text("\n".join(page(name, summary, version, sections, related)) + "\n")
