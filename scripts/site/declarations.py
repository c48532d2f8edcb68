# SPDX-License-Identifier: MIT
"""How declarations look in the headers, which clang-format has laid out."""

import re
import textwrap


def indent_of(line):
    return len(line) - len(line.lstrip())


def declaration(lines, number):
    """The declaration around a line; without a body, unless that of an enumeration."""
    if re.match(r"\s*enum ", lines[number - 1]):
        last = next(index for index in range(number - 1, len(lines)) if "};" in lines[index])
        return textwrap.dedent("\n".join(lines[number - 1:last + 1]))
    lines = [re.sub(r"(^|\s)// .*", "", line) for line in lines]
    first = number - 1
    while first > 0 and re.search(r"[^;{}:/\s]\s*$", lines[first - 1]) and "///" not in lines[first - 1]:
        first -= 1
    indent = indent_of(lines[first])
    text, depth = [], 0
    for line in lines[first:]:
        line = line[indent:].rstrip()
        for index, letter in enumerate(line):
            depth += {"(": 1, ")": -1}.get(letter, 0)
            head = line[:index].rstrip()
            opens_body = letter == "{" and (not head or line[index - 1] == " ") and not head.endswith("=")
            begins_list = line[index:index + 2] == ": " and (not head or re.search(r"\)( noexcept)?$", head))
            if depth == 0 and (letter == ";" or opens_body or begins_list):
                text.append(head)
                return "\n".join(part for part in text if part.strip()) + ";"
        text.append(line)
    raise ValueError(f"no declaration at line {number}")


def whole_type(lines, number):
    """A type that has only data, as it stands in the header."""
    first = number - 1
    while lines[first - 1].lstrip().startswith(("template", "requires")):
        first -= 1
    text = []
    for line in lines[first:]:
        text.append(line)
        if re.search(r"\};?$", line) and (line == lines[number - 1] or indent_of(line) <= indent_of(lines[first])):
            break
    return textwrap.dedent("\n".join(line for line in text if line.strip() != "///"))
