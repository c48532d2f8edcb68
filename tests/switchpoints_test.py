#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when a public function that is documented as a switchpoint has no loop in the tables of
tests/cancellation/endless_*_test.cpp, which show that a loop of its calls can be ended.

A row may be followed by words: "io::read, nothing" is a row of io::read. Overloads share a row, and
so do a primitive and its form in motet::local. What nothing interrupts needs no row.

usage: switchpoints_test.py SOURCE-ROOT
"""

import pathlib
import re
import sys

# Bases of public classes, which a program knows by the name of a class that has them.
KNOWN_AS = {"socket_stream": "net::tcp_stream", "socket_listener": "net::tcp_listener",
            "datagram_socket": "net::udp_socket"}

EXEMPT = {
    "sleep": "does not return",
    "shield": "nothing is thrown inside; what it calls is no part of the promise",
    "run": "a thread has one runtime at a time, and its loop is that of the caller",
    "run_until_signal": "as run",
    "file::seek": "not a switchpoint unless it waits",
    "file_watch::~file_watch": "a destructor, which throws nothing",
    "signal_set::~signal_set": "a destructor, which throws nothing",
    "thread_pool::~thread_pool": "a destructor, which throws nothing",
    "thread_pool::thread_pool": "nothing interrupts it, as the overload before says",
    "writer::~writer": "a destructor: the interruption stays pending",
    "testing::world::advance": "tests/testing/world_test.cpp ends such a loop",
    "testing::world::crash": "tests/testing/network_test.cpp ends such a loop",
    "testing::world::restart": "tests/testing/network_test.cpp ends such a loop",
    "testing::world::eventually": "tests/testing/world_test.cpp ends such a loop",
    "testing::world::until_idle": "tests/testing/world_test.cpp ends such a loop",
    "http::send_file": "a request is answered once",
    "http::websocket::accept": "a request is answered once",
}


def pieces(path):
    """The code of a header, character by character, and its doc-comments and empty lines."""
    comment = []
    for line in path.read_text().splitlines():
        text = line.strip()
        if text.startswith("///"):
            comment.append(text[3:].strip())
            continue
        if comment:
            yield "comment", "\n".join(comment)
            comment = []
        if not text:
            yield "gap", ""
        if text.startswith(("#", "//")):
            continue
        text = re.sub(r'"(\\.|[^"\\])*"', '""', text)
        text = re.sub(r"'(\\.|[^'\\])+'", "0", text)
        for character in re.sub(r"\s*//.*", "", text) + " ":
            yield "code", character


def behind(text, opener, closer):
    """What follows the brackets that begin in `text`."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character == opener) - (character == closer and text[index - 1] != "-")
        if character == closer and depth == 0:
            return text[index + 1:].strip()
    return ""


def without_heads(text):
    """A declaration without its attributes, template parameters and what it requires."""
    text = re.sub(r"\[\[.*?\]\]", "", text).strip()
    while True:
        if text.startswith("template"):
            text = behind(text, "<", ">")
        elif re.match(r"requires\s*\(", text):
            text = behind(text, "(", ")")
        elif re.match(r"requires\s*[\w:]+\s*<", text):
            text = behind(text, "<", ">")
        else:
            return text


def name_of_function(declaration):
    """None for what declares no function, or only copies, moves or deletes one."""
    text = without_heads(declaration).replace("decltype(auto)", "auto")
    if re.match(r"(using|friend (class|struct)|typedef|static_assert|enum|concept)\b", text):
        return None
    if re.search(r"=\s*delete|operator=\s*\(", text):
        return None
    match = re.search(r"(operator\s*\(\)|operator\s*[^\s\w(]+|~?\w+)\s*\(", text)
    if not match or "=" in text[:match.start()]:
        return None
    name = match.group(1).replace(" ", "")
    copies = re.match(rf"(const )?{re.escape(name)}\s*&", text[match.end():])
    return None if copies else name


class Reader:
    """Goes through a header, and knows which class it is in and what is public there."""

    def __init__(self, path):
        self.path = path
        self.scopes = []  # [name, what can be seen there]
        self.clear()
        self.comment = None
        self.last = None

    def clear(self):
        self.text = ""
        self.parentheses = 0

    def declared(self):
        """The function that has just been declared, if its comment is told of."""
        name = name_of_function(self.text)
        self.clear()
        if name is None or self.comment is None:
            return None
        if any(access != "public" for _, access in self.scopes):
            return None
        return "::".join([scope for scope, _ in self.scopes if scope] + [name])

    def enter(self):
        """Whether a brace opens a namespace or a class."""
        text = without_heads(self.text)
        space = re.match(r"(?:inline )?namespace\s*([\w:]*)", text)
        kind = re.match(r"(class|struct)\s+([\w:]+)(?!.*\()", text)
        if not space and not kind:
            return False
        if space:
            is_wrapper = space.group(1) in ("motet", "MOTET_ABI", "detail", "compat")
            self.scopes.append(["" if is_wrapper else space.group(1), "public"])
        else:
            name = re.sub(r"^basic_", "", kind.group(2))
            self.scopes.append([name, "private" if kind.group(1) == "class" else "public"])
        self.clear()
        self.comment = None
        return True

    def functions(self):
        """Names and comments. A comment serves the declarations up to the next gap, and the
        definitions of the same name."""
        skipped = 0  # braces of a body that are open
        for kind, piece in pieces(self.path):
            if kind == "code" and skipped > 0:
                skipped += (piece == "{") - (piece == "}")
            elif kind == "comment" and skipped == 0:
                self.comment, self.last = piece, None
            elif kind == "gap" and skipped == 0 and not self.text.strip():
                self.comment = None
            elif kind == "code" and piece == ":" and self.text.strip() in ("public", "private",
                                                                         "protected"):
                self.scopes[-1][1] = self.text.strip()
                self.clear()
            elif kind == "code" and piece == "{" and self.parentheses > 0:
                skipped = 1
            elif kind == "code" and piece == "{":
                if self.enter():
                    continue
                if re.search(r"\)[^{]*:\s.*\w$", self.text) and "::" not in self.text[-9:]:
                    skipped = 1  # initializes a member
                    continue
                yield from self.told(self.declared(), body=True)
                skipped = 1
            elif kind == "code" and piece == "}":
                if self.scopes:
                    self.scopes.pop()
                self.clear()
                self.comment = None
            elif kind == "code" and piece == ";" and self.parentheses == 0:
                yield from self.told(self.declared(), body=False)
            elif kind == "code":
                self.parentheses += (piece == "(") - (piece == ")")
                self.text += piece

    def told(self, name, body):
        if name is None:
            return
        if self.last in (None, name) or not body:
            yield name, self.comment
            self.last = name


def is_switchpoint(comment):
    match = re.search(r"(?:^|\n|\. )Switchpoint.*", comment)
    return match is not None and "nothing interrupts it" not in " ".join(
        comment[match.start():].split("Throws:")[0].split())


def public_name(name):
    first, _, rest = name.partition("::")
    return f"{KNOWN_AS[first]}::{rest}" if first in KNOWN_AS else name


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    headers = [path for folder in ("runtime/include", "runtime/boost_fiber/include")
               for path in sorted((root / folder).rglob("*.hpp")) if "detail" not in path.relative_to(root).parts]
    header_by_name = {}
    for header in headers:
        for name, comment in Reader(header).functions():
            if is_switchpoint(comment):
                header_by_name[public_name(name)] = header.relative_to(root)
    rows = set()
    for table in sorted((root / "tests/cancellation").glob("endless_*_test.cpp")):
        for name in re.findall(r'^\s*\{"([^"]+)",', table.read_text(), re.MULTILINE):
            rows.add(name.split(",")[0])
    problems = [f"{header}: {name} is a switchpoint, and no table of endless loops has it"
                for name, header in sorted(header_by_name.items())
                if name not in rows and name not in EXEMPT]
    problems += [f"EXEMPT: no switchpoint is called {name}" for name in EXEMPT
                 if name not in header_by_name]
    problems += [f"EXEMPT: {name} has a row" for name in EXEMPT if name in rows]
    print(*problems, sep="\n")
    sys.exit(1 if problems or len(header_by_name) < 100 else 0)


if __name__ == "__main__":
    main()
