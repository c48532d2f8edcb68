#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a program says of every kind of call is the same on a backend as on the simulation.

usage: trace_test.py PROGRAM BACKEND
"""

import difflib
import os
import subprocess
import sys
import tempfile


def trace(program, backend):
    with tempfile.TemporaryDirectory() as place:
        process = subprocess.run([program, place], env=os.environ | {"MOTET_BACKEND": backend},
                                 capture_output=True, text=True, timeout=25, check=False)
    assert process.returncode == 0 and not process.stderr, (backend, process)
    return process.stdout.splitlines()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, backend = sys.argv[1:]
    expectation = trace(program, "sim")
    assert len(expectation) > 70, expectation
    output = trace(program, backend)
    if output != expectation:
        sys.exit("\n".join(difflib.unified_diff(expectation, output, "sim", backend, lineterm="")))
    print("\n".join(expectation))


if __name__ == "__main__":
    main()
