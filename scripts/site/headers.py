# SPDX-License-Identifier: MIT
"""What the public headers say, from Doxygen's XML and, for how a declaration looks, from the headers."""

import dataclasses
import pathlib
import re
import subprocess
import xml.etree.ElementTree as xml

from declarations import declaration, whole_type
from families import UNNAMED

# Attributes say nothing to a reader; each heading of a comment becomes a paragraph of its own.
FILTER = (r"s/\[\[[^]]*\]\] ?//g; "
          r"s_^( *)/// ((Returns|Throws|Source):|(Not a s|S)witchpoint)_\1///\n\1/// \2_")

DOXYFILE = """
INPUT = {folders}
RECURSIVE = YES
FILE_PATTERNS = *.hpp
STRIP_FROM_PATH = {folders}
OUTPUT_DIRECTORY = {place}
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
QUIET = YES
WARNINGS = NO
WARN_IF_UNDOCUMENTED = NO
WARN_IF_DOC_ERROR = NO
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = MOTET_ABI=abi
INPUT_FILTER = "sed -E '{filter}'"
AUTOLINK_SUPPORT = NO
SORT_MEMBER_DOCS = NO
HAVE_DOT = NO
"""

HEADINGS = ("Returns", "Throws", "Source")
SWITCHES = re.compile(r"(^|(?<=\. ))(Switchpoint|Not a switchpoint)\b[^.]*\..*$")


@dataclasses.dataclass
class Entry:
    """Something with a comment, and what has none and follows it."""
    name: str
    line: int
    code: list
    text: list                   # paragraphs, of what is not told below
    switches: str = ""           # "Switchpoint.", or what more there is to say
    sections: dict = dataclasses.field(default_factory=dict)  # by heading
    members: list = dataclasses.field(default_factory=list)
    is_type: bool = False


@dataclasses.dataclass
class Header:
    name: str
    intro: str
    entries: list


def text_of(node):
    """Markdown."""
    text = node.text or ""
    for child in node:
        inner = text_of(child)
        text += f"`{inner}`" if child.tag == "computeroutput" else inner
        text += child.tail or ""
    return text


def paragraphs(member):
    """Of a comment of one line Doxygen makes what it calls a brief description."""
    return [" ".join(text_of(para).split())
            for kind in ("brief", "detailed") for para in member.iterfind(f"{kind}description/para")]


def describe(entry, member):
    for text in paragraphs(member):
        match = SWITCHES.search(text)
        if match:
            entry.switches = match[0].strip()
            text = (text[:match.start()] + text[match.end():]).strip()
        heading, _, rest = text.partition(": ")
        if heading in HEADINGS:
            entry.sections[heading] = rest
        elif text:
            entry.text.append(text)


def line_of(node):
    """Of the declaration, where there is a definition elsewhere."""
    place = node.find("location")
    return int(place.get("declline") or place.get("line"))


def wanted(member):
    if member.get("prot") not in ("public", None) or member.get("kind") in ("friend", "define"):
        return member.get("kind") == "friend" and any(paragraphs(member))
    return "=delete" not in (member.findtext("argsstring") or "").replace(" ", "")


def add_members(entries, members, lines):
    """Members in their order; those without a comment belong to the one before."""
    last_line = None
    for member in sorted(members, key=line_of):
        if not wanted(member):
            continue
        line = line_of(member)
        documented = any(paragraphs(member))
        code = declaration(lines, line)
        numbers = range(last_line or line, line)
        is_separate = any(not lines[number - 1].strip() for number in numbers)
        if documented or not entries or is_separate:
            entries.append(Entry(member.findtext("name"), line, [code], []))
            describe(entries[-1], member)
        elif code not in entries[-1].code:
            entries[-1].code.append(code)
        last_line = line


def intro_of(lines):
    """The comment that a header begins with."""
    text = []
    for line in lines[1:]:
        if not line.startswith("//"):
            break
        text.append(line[2:].strip())
    return " ".join(text)


def members_of(compound):
    return [member for section in compound.iterfind("sectiondef") for member in section.iterfind("memberdef")]


def public_name(compound):
    """Within motet; nothing for what is not of motet, or in namespace detail and not shown."""
    name = compound.findtext("compoundname")
    parts = name.split("::")
    if parts[0] != "motet" or ("detail" in parts and parts[-1] not in UNNAMED):
        return None
    return re.sub(r"^motet(::abi)?(::)?(compat::boost_fiber(::)?)?(detail::)?", "", name)


class Reader:
    def __init__(self, include, place):
        self.include = include
        folders = " ".join(map(str, include))
        subprocess.run(["doxygen", "-"], input=DOXYFILE.format(folders=folders, place=place, filter=FILTER),
                       text=True, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.read_lines = {}
        self.compounds = {}
        for path in sorted((pathlib.Path(place) / "xml").glob("*.xml")):
            for compound in xml.parse(path).getroot().iterfind("compounddef"):
                self.compounds[compound.get("id")] = compound

    def file_of(self, node):
        place = node.find("location")
        path = (place.get("declfile") or place.get("file")).removesuffix(".hpp")
        for folder in self.include:
            path = path.removeprefix(f"{folder}/")
        return path

    def lines(self, header):
        """As Doxygen has read them, for it counts these."""
        if header not in self.read_lines:
            path = next(path for folder in self.include if (path := folder / f"{header}.hpp").exists())
            filtered = subprocess.run(["sed", "-E", FILTER, path], capture_output=True, text=True, check=True)
            self.read_lines[header] = filtered.stdout.splitlines()
        return self.read_lines[header]

    def types_in(self, header):
        for compound in self.compounds.values():
            if compound.get("kind") in ("class", "struct") and self.file_of(compound) == header:
                yield compound

    def type_entry(self, compound, name):
        header = self.file_of(compound)
        lines = self.lines(header)
        line = line_of(compound)
        entry = Entry(name, line, [declaration(lines, line)], [], is_type=True)
        describe(entry, compound)
        if all(member.get("kind") == "variable" for member in members_of(compound)):
            entry.code = [whole_type(lines, line)]
            return entry
        add_members(entry.members, members_of(compound), lines)
        for inner in compound.iterfind("innerclass"):
            nested = self.compounds[inner.get("refid")]
            if inner.get("prot") == "public" and any(paragraphs(nested)):
                entry.members.append(self.type_entry(nested, nested.findtext("compoundname").rpartition("::")[2]))
        entry.members.sort(key=lambda member: member.line)
        for base in compound.iterfind("basecompoundref[@prot='public']"):
            base_compound = self.compounds.get(base.get("refid"))
            if base_compound is not None and "detail" in base_compound.findtext("compoundname").split("::"):
                entry.members += self.type_entry(base_compound, name).members
        return entry

    def take_from_detail(self, alias):
        """What is a class in namespace detail, and has a public name by `using`, is told of there."""
        match = re.search(r"^using (\w+) = detail::(\w+)<", alias.code[0], re.MULTILINE)
        if not match:
            return
        for compound in self.compounds.values():
            if compound.findtext("compoundname").endswith(f"detail::{match[2]}"):
                detail_entry = self.type_entry(compound, alias.name)
                alias.is_type, alias.members, alias.text = True, detail_entry.members, alias.text + detail_entry.text
                alias.code[0] = re.sub(r"^using (\w+) = .*$", r"class \1;", alias.code[0], flags=re.MULTILINE | re.DOTALL)
        for member in alias.members:
            member.name = member.name.replace(match[2], alias.name)
            member.code = [code.replace(match[2], alias.name) for code in member.code]

    def types_of(self, header):
        """Of a template and its specialisations the first that has members is told of."""
        lines = self.lines(header)
        types = {public_name(compound): compound for compound in self.types_in(header)}
        for name, compound in types.items():
            if not name or name.rpartition("::")[0] in types:
                continue
            general = types.get(name.partition("<")[0])
            if compound is not general and general is not None and members_of(general):
                continue
            is_announced = not members_of(compound) and re.search(r"^[^{]*;$", lines[line_of(compound) - 1])
            if not is_announced:
                yield self.type_entry(compound, name)

    def free_of(self, header):
        """What is in no class, a namespace at a time."""
        for compound in self.compounds.values():
            space = public_name(compound)
            if compound.get("kind") != "namespace" or space is None:
                continue
            members = []
            add_members(members, [member for member in members_of(compound) if self.file_of(member) == header],
                        self.lines(header))
            for entry in members:
                if space == "local":
                    entry.name = f"local::{entry.name}"
                else:
                    self.take_from_detail(entry)
            yield from members

    def read(self, header):
        entries = sorted([*self.types_of(header), *self.free_of(header)], key=lambda entry: entry.line)
        return Header(f"motet/{header}.hpp", intro_of(self.lines(header)), entries)
