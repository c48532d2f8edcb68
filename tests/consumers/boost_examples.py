#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The examples of Boost.Fiber say the same when they are compiled with motet/compat/boost_fiber.hpp.
They come from Debian's packages, like Boost.Fiber itself. What names a fiber differs.

usage: boost_examples.py COMPILER [FLAG...]
"""

import pathlib
import re
import subprocess
import sys
import tempfile

EXAMPLES = pathlib.Path("/usr/share/doc/libboost1.74-doc/examples/libs/fiber/examples")
# Of the others four ask for schedulers or split stacks, which motet has not.
NAMES = ("adapt_callbacks", "adapt_method_calls", "adapt_nonblocking", "barrier", "future", "join",
         "ping_pong", "range_for", "simple", "wait_stuff")
NAME_OF_A_FIBER = re.compile(r"\b(fiber|f1 :) (0x[0-9a-f]+|fiber \d+|\d+)")


def said_by(command, source, libraries, program):
    subprocess.run([*command, "-w", str(source), "-o", str(program), *libraries], check=True)
    result = subprocess.run([str(program)], capture_output=True, text=True, timeout=30)
    assert result.returncode == 0, (program, result)
    return NAME_OF_A_FIBER.sub(r"\1 N", result.stdout + result.stderr)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    library = [word for word in sys.argv[1:] if word.startswith(("-L", "-l", "-Wl"))]
    compiler = [word for word in sys.argv[1:] if word not in library]
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        header = place / "include" / "boost" / "fiber" / "all.hpp"
        header.parent.mkdir(parents=True)
        header.write_text("#include <motet/compat/boost_fiber.hpp>\n")
        for name in NAMES:
            source = EXAMPLES / f"{name}.cpp"
            motet_output = said_by([*compiler, f"-I{place}/include"], source, library, place / "ours")
            boost_output = said_by([word for word in compiler if not word.startswith("-I")], source,
                                   ["-lboost_fiber", "-lboost_context"], place / "theirs")
            assert motet_output and motet_output == boost_output, (name, motet_output, boost_output)


if __name__ == "__main__":
    main()
