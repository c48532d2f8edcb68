#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when a room of the library calls, or reads, what a room above it defines.

What one room needs of a room above goes through the table of core/hooks.hpp.

usage: layering_test.py ARCHIVE | --self-test
  ARCHIVE  the library's object files
"""

import re
import subprocess
import sys

from floors_test import ROOMS

# The file that fills the table in; nothing else of it is used.
TOP = "hooks.cpp"
TABLE = re.compile(r"_ZN5motet\d+abi_\w+6detail5hooksE")
# Two words of `nm -P -A`: the object file, and what it defines or lacks.
LINE = re.compile(r"^.*[\[:/]([^/\]]+)\.o\]?: (\S+) ([A-Za-z])\b")
STRONG = "TDBRSG"


def room_of(file):
    """Of an object file: core_mail_mailbox.cpp is in the core. None for a file of no room."""
    if file == TOP:
        return TOP
    if re.match(r"(\.\._)*backends_", file):
        return "backends"
    room = file.split("_")[0]
    return room if room in ROOMS else None


def may_use(room, target_room):
    if room == target_room or room == TOP:
        return True
    if room == "backends":
        return target_room == "base"
    if target_room == "backends":
        return room == "runtime"
    return target_room != TOP and ROOMS.index(target_room) < ROOMS.index(room)


def problems(listing):
    """What is wrong in an output of `nm -P -A`, a sentence each."""
    definitions, uses = {}, []
    for line in listing.splitlines():
        match = LINE.match(line)
        if not match:
            continue
        file, symbol, kind = match.groups()
        if room_of(file) is None:
            yield f"{file}: is in no room"
        elif kind == "U":
            uses.append((file, symbol))
        elif kind in STRONG:
            definitions[symbol] = file
    if not definitions:
        yield "the archive defines nothing"
    for file, symbol in uses:
        definition = definitions.get(symbol)
        if definition is None or may_use(room_of(file), room_of(definition)) or TABLE.fullmatch(symbol):
            continue
        yield f"{file} ({room_of(file)}) uses {symbol}, which {definition} ({room_of(definition)}) defines"


def self_test():
    def listed(*lines):
        return "\n".join(f"lib.a[lib.so.p/{file}.o]: {symbol} {kind} 0 1" for file, symbol, kind in lines)

    table = "_ZN5motet5abi_06detail5hooksE"
    house = [
        ("hooks.cpp", table, "R"), ("hooks.cpp", "start", "U"), ("fibers_fiber_end.cpp", "start", "T"),
        ("core_poll.cpp", table, "U"), ("core_poll.cpp", "poll", "T"), ("fibers_fiber_end.cpp", "poll", "U"),
        ("runtime_run.cpp", "make_backend", "U"), (".._backends_backends.cpp", "make_backend", "T"),
        (".._backends_backends.cpp", "fail", "U"), ("base_errors.cpp", "fail", "T"),
        ("core_poll.cpp", "memcpy", "U"), ("fibers_fiber_end.cpp", "inline_function", "W"),
        ("core_poll.cpp", "inline_function", "U"),
    ]
    assert list(problems(listed(*house))) == [], list(problems(listed(*house)))
    mistakes = [
        ("core_mail_mailbox.cpp", "start", "U"),
        ("core_poll.cpp", "make_backend", "U"),
        (".._backends_backends.cpp", "poll", "U"),
        ("nowhere_a.cpp", "a", "T"),
    ]
    for mistake in mistakes:
        complaints = list(problems(listed(*house, mistake)))
        assert len(complaints) == 1 and complaints[0].startswith(mistake[0]), (mistake, complaints)
    symbol = "_ZN5motet5abi_06detail6hooks2E"
    complaints = list(problems(listed(*house, ("hooks.cpp", symbol, "R"), ("core_poll.cpp", symbol, "U"))))
    assert len(complaints) == 1, complaints
    assert list(problems("")) == ["the archive defines nothing"]


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    listing = subprocess.run(["nm", "-P", "-A", sys.argv[1]], check=True, capture_output=True, text=True).stdout
    complaints = list(problems(listing))
    print(*complaints, sep="\n")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
