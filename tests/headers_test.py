#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each header compiles alone: it includes what it uses.

usage: headers_test.py PROJECT DIRECTORY COMPILER...
  DIRECTORY  for the sources that include one header each
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys

# Precompiled, and not included; and for another processor than this one.
LEFT_OUT = {"runtime/pch/standard.hpp", "runtime/include/motet/detail/platform/context/aarch64.hpp",
            "runtime/include/motet/detail/platform/context/x86_64.hpp"}
FOLDERS = ("runtime", "runtime/include", "runtime/boost_fiber/include", "backends")
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wno-unused-function")


def headers(project):
    paths = [header.relative_to(project) for folder in ("runtime", "backends", "tools")
             for header in sorted((project / folder).rglob("*.hpp"))]
    return [header for header in paths if str(header) not in LEFT_OUT]


def complaint_of(project, directory, compiler, header):
    """What the compiler writes about a source that includes the header alone; empty if it compiles."""
    source = directory / (str(header).replace("/", "_") + ".cpp")
    source.write_text(f'#include "{header}"\n')
    folders = [f"-I{project / folder}" for folder in (*FOLDERS, "", header.parent)]
    command = [*compiler, "-std=c++20", "-O0", *WARNINGS, *folders, "-c", str(source), "-o", str(source.with_suffix(".o"))]
    result = subprocess.run(command, capture_output=True, text=True)
    return "" if result.returncode == 0 else f"{header} does not compile alone:\n{result.stderr}"


def main():
    project, directory = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    directory.mkdir(parents=True, exist_ok=True)
    paths = headers(project)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        complaints = list(filter(None, workers.map(
            lambda header: complaint_of(project, directory, sys.argv[3:], header), paths)))
    print(*complaints, sep="\n")
    print(f"{len(paths) - len(complaints)} headers compile alone, {len(complaints)} do not")
    return 1 if complaints or len(paths) < 300 else 0


if __name__ == "__main__":
    sys.exit(main())
