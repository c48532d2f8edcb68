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


def run(*command, directory, **environment):
    result = subprocess.run(command, cwd=directory, env={**os.environ, **environment}, capture_output=True, text=True,
                            timeout=PATIENCE)
    assert result.returncode == 0, (command, result)
    return result.stdout


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    reader, example = (os.path.abspath(path) for path in sys.argv[1:])
    with tempfile.TemporaryDirectory() as directory:
        plain = run(example, directory=directory)
        assert run(example, directory=directory, MOTET_TRACE="trace") == plain
        output = run(reader, "trace", directory=directory)
        assert re.search(r"^thread \d+: .* turns?, [1-9]\d* spun, [1-9]\d* ended", output, re.MULTILINE), output
        assert re.search(r"^  \S+ .s in \d+ turns?: spun at ", output, re.MULTILINE), output
        run(reader, "--svg", "picture.svg", "--fxt", "trace.fxt", "trace", directory=directory)
        xml.dom.minidom.parse(str(pathlib.Path(directory) / "picture.svg"))


if __name__ == "__main__":
    main()
