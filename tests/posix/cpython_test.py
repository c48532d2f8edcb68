#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CPython's own tests of what waits, with motet-posix and motet-posix-locks preloaded and its main function as a fiber: none
fails that does not fail without. Takes some minutes. The last line is "N passed, N failed", in files of tests.

usage: cpython_test.py LIBRARY LOCKS [FILE...]
"""

import os
import re
import subprocess
import sys

FILES = ["test_select", "test_poll", "test_epoll", "test_selectors", "test_queue", "test_signal", "test_socket", "test_ssl",
         "test_subprocess", "test_threading", "test_asyncio"]
# It expects a child process to have no descriptors but those that it passes; the child is a runtime, too.
EXPECTED = {"test.test_subprocess.POSIXProcessTestCase.test_pass_fds_redirected"}
PATIENCE = 1200


def failures(name, variables):
    """The tests of a file that fail, and whether the file ran to its end."""
    command = [sys.executable, "-m", "test", "-v", "-i", "*VSOCK*", name]
    try:
        result = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, errors="replace",
                                timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return set(), False
    failed = set(re.findall(r"^(?:FAIL|ERROR): .*?\((.*?)\)", result.stdout, re.MULTILINE))
    return failed, re.search(r"^Ran [1-9]\d* tests? in", result.stdout + result.stderr, re.MULTILINE) is not None


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    library, locks = map(os.path.abspath, sys.argv[1:3])
    if subprocess.run([sys.executable, "-c", "import test.test_select"], capture_output=True).returncode != 0:
        print("CPython's tests are not installed (Debian: libpython3.11-testsuite)\n0 passed, 0 failed")
        return
    passed = failed = 0
    for name in sys.argv[3:] or FILES:
        without, _ = failures(name, {})
        for backend in ("io_uring", "libev"):
            found, ended = failures(name, {"LD_PRELOAD": f"{locks}:{library}", "MOTET_POSIX_MAIN": "1", "MOTET_BACKEND": backend})
            wrong = found - without - EXPECTED
            print(f"{name} [{backend}]:", *sorted(wrong) or ["ok" if ended else "not run to its end"], flush=True)
            if wrong or not ended:
                failed += 1
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
