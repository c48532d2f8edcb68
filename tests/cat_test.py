#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cat_many beside cat.

usage: cat_test.py CAT-MANY
"""

import os
import pathlib
import subprocess
import sys
import tempfile


def ran(program, *paths):
    return subprocess.run([program, *paths], capture_output=True, timeout=50, check=False)


def same_as_cat(program, folder):
    sizes = [0, 1, 65_535, 65_536, 65_537, 3_000_000] + [1000] * 30
    for number, size in enumerate(sizes):
        (folder / f"file{number}").write_bytes(os.urandom(size))
    paths = [folder / f"file{number}" for number in range(len(sizes))]
    result = ran(program, *paths, "/dev/null", *reversed(paths))
    expectation = ran("cat", *paths, "/dev/null", *reversed(paths))
    assert result.returncode == 0, result.stderr
    assert result.stdout == expectation.stdout


def goes_on_after_an_error(program, folder):
    result = ran(program, folder / "file1", folder / "missing", folder, folder / "file2")
    expectation = ran("cat", folder / "file1", folder / "missing", folder, folder / "file2")
    assert result.returncode == expectation.returncode == 1
    assert result.stdout == expectation.stdout
    assert b"missing" in result.stderr, result.stderr
    assert len(result.stderr.splitlines()) == 2, result.stderr


def ends_when_nobody_reads(program, folder):
    reader = subprocess.Popen(["head", "-c", "1"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    process = subprocess.Popen([program, folder / "file5", folder / "file5"], stdout=reader.stdin,
                               stderr=subprocess.PIPE)
    reader.stdin.close()
    _, complaint = process.communicate(timeout=50)
    assert process.returncode == 1 and complaint == b"", (process.returncode, complaint)
    assert reader.wait(timeout=50) == 0


def reads_what_comes_slowly(program, folder):
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    process = subprocess.Popen([program, pipe, folder / "file1"], stdout=subprocess.PIPE)
    with open(pipe, "wb", buffering=0) as end:
        for part in (b"one ", b"two ", b"three "):
            end.write(part)
    output, _ = process.communicate(timeout=50)
    assert output == b"one two three " + (folder / "file1").read_bytes()
    assert process.returncode == 0


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        same_as_cat(sys.argv[1], folder)
        goes_on_after_an_error(sys.argv[1], folder)
        ends_when_nobody_reads(sys.argv[1], folder)
        reads_what_comes_slowly(sys.argv[1], folder)


if __name__ == "__main__":
    main()
