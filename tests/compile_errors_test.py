#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails unless a common mistake is one error of each compiler, with a message that says what to write.

usage: compile_errors_test.py INCLUDE-DIRECTORY COMPILER...
"""

import re
import subprocess
import sys

PRELUDE = """#include <motet/motet.hpp>
using namespace motet;
using namespace std::chrono_literals;
void work(int);
void mistake([[maybe_unused]] channel<int>& items, [[maybe_unused]] group& several) {
  %s;
}
"""
NO_ARGUMENTS = "spin() takes no arguments for its callable: put them into a lambda"
NO_PARAMETERS = "spin() takes a callable without parameters: put what it needs into a lambda"
A_DURATION = "a time is a std::chrono duration, as 5s or 100ms, and not a number"
MISTAKES = [
    ("spin(work, 3)", NO_ARGUMENTS),
    ("spin(work)", NO_PARAMETERS),
    ("spin({.name = \"worker\"}, [](int) {})", NO_PARAMETERS),
    ("several.spin([](int) {})", NO_PARAMETERS),
    ("select(on_pop(items, [](std::string) {}))", "the function of on_pop() takes a std::optional of an item"),
    ("with_timeout(5, [] {})", A_DURATION),
    ("move_on_after(0.5, [] {})", A_DURATION),
    ("sleep_for(5)", A_DURATION),
    ("select(on_timeout(5, [] {}))", A_DURATION),
]
FINE = "spin([] { work(3); }); with_timeout(5s, [] {}); select(on_pop(items, [](std::optional<int>) {}))"


def errors(include, compiler, statement):
    process = subprocess.run([*compiler.split(), "-std=c++20", "-fsyntax-only", "-I", include, "-x", "c++", "-"],
                             input=PRELUDE % statement, capture_output=True, text=True, timeout=55, check=False)
    return re.findall(r"error: (.*)", process.stderr)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    include, compilers = sys.argv[1], sys.argv[2:]
    complaints = []
    for compiler in compilers:
        if messages := errors(include, compiler, FINE):
            complaints.append(f"{compiler}: {FINE}: {messages}")
        for statement, message in MISTAKES:
            messages = errors(include, compiler, statement)
            if len(messages) != 1 or message not in messages[0]:
                complaints.append(f"{compiler}: {statement}: {messages}")
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
