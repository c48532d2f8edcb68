#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""motet-doctor says what this host gives, and what to set where it gives less.

usage: doctor_test.py DOCTOR DENY yes|no BACKEND...
  yes  stacks are measured
"""

import os
import re
import subprocess
import sys

PATIENCE = 55
CANNOT_REFUSE = 77


def told(*command, status=0, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MOTET_")}
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=clean | environment)
    assert result.returncode in (status, CANNOT_REFUSE), (command, result)
    return None if result.returncode != status else result.stdout + result.stderr


def line(text, title):
    match = re.search(rf"^{re.escape(title)} +(.+)$", text, re.MULTILINE)
    assert match, (title, text)
    return match[1]


def the_host(doctor, deny, _, backends):
    text = told(doctor, "--quick")
    assert line(text, "kernel").startswith("Linux "), text
    assert line(text, "backend").split()[0].rstrip(";") in backends, text
    assert int(line(text, "processors").split()[0]) >= 1, text
    for title in ("guards of stacks", "huge pages", "clock source", "descriptors", "locked memory"):
        line(text, title)
    assert "\nFor more:\n" in text or text.endswith("\nThere is nothing to set.\n"), text


def the_choice_of_the_environment(doctor, deny, _, backends):
    text = told(doctor, "--quick", MOTET_BACKEND="sim")
    assert line(text, "backend").startswith("sim (MOTET_BACKEND asks for it)"), text


def a_refused_ring(doctor, deny, _, backends):
    text = told(deny, "io_uring_setup", "--", doctor, "--quick")
    if text is None or "io_uring" not in backends:
        return
    assert "not io_uring: io_uring_setup: Operation not permitted" in line(text, "backend"), text
    advice = text[text.index("For more:"):]
    assert re.search(r"^  backend: (allow io_uring_setup|sysctl kernel.io_uring_disabled=0)", advice, re.MULTILINE), text
    assert "task work" not in text, text


def figures(doctor, deny, measures_stacks, backends):
    text = told(doctor)
    table = re.findall(r"^(\S.*?) {2,}(\d+\.\d) +(\d+) +(\d+) +(\d+\.\d) +(\d+|-)$", text, re.MULTILINE)
    rows = {row[0] for row in table}
    works = line(text, "backend").split()[0].rstrip(";")
    assert works == "sim" or (works in rows and "without guard" in rows), text
    assert all(float(figure) > 0 for row in table for figure in row[1:4]), text
    for row in table:
        assert int(row[5]) in range(4, 65, 4) if measures_stacks else row[5] == "-", text


def usage(doctor, deny, _, backends):
    assert "usage: " in told(doctor, "--help")
    assert "usage: " in told(doctor, "--slow", status=64)


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    doctor, deny, measures_stacks, *backends = sys.argv[1:]
    for test in (the_host, the_choice_of_the_environment, a_refused_ring, figures, usage):
        test(doctor, deny, measures_stacks == "yes", backends)
        print(f"ok: {test.__name__}", flush=True)


if __name__ == "__main__":
    main()
