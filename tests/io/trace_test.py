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
        run = subprocess.run([program, place], env=os.environ | {"MOTET_BACKEND": backend},
                             capture_output=True, text=True, timeout=25, check=False)
    assert run.returncode == 0 and not run.stderr, (backend, run)
    return run.stdout.splitlines()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, backend = sys.argv[1:]
    wanted = trace(program, "sim")
    assert len(wanted) > 70, wanted
    said = trace(program, backend)
    if said != wanted:
        sys.exit("\n".join(difflib.unified_diff(wanted, said, "sim", backend, lineterm="")))
    print("\n".join(wanted))


if __name__ == "__main__":
    main()
