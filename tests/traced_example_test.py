#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An example says the same when it is recorded, and motet-trace has what its fibers did.

usage: traced_example_test.py MOTET-TRACE EXAMPLE
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.dom.minidom

PATIENCE = 50


def run(*command, where, **environment):
    done = subprocess.run(command, cwd=where, env={**os.environ, **environment}, capture_output=True, text=True,
                          timeout=PATIENCE)
    assert done.returncode == 0, (command, done)
    return done.stdout


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    reader, example = (os.path.abspath(path) for path in sys.argv[1:])
    with tempfile.TemporaryDirectory() as where:
        plain = run(example, where=where)
        assert run(example, where=where, MOTET_TRACE="trace") == plain
        told = run(reader, "trace", where=where)
        assert re.search(r"^thread \d+: .* turns?, [1-9]\d* spun, [1-9]\d* ended", told, re.MULTILINE), told
        assert re.search(r"^  \S+ .s in \d+ turns?: spun at ", told, re.MULTILINE), told
        run(reader, "--svg", "picture.svg", "--fxt", "trace.fxt", "trace", where=where)
        xml.dom.minidom.parse(str(pathlib.Path(where) / "picture.svg"))


if __name__ == "__main__":
    main()
