#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles the programs of a page, runs them, and compares what they say with the block of text behind
each. Where that has lines with '>' and '<' the program is a server, on the port 8080, which is told and
answers so; it is stopped by SIGINT. A page with a prelude has the bodies of functions instead, which
are one program.

usage: snippets.py PAGE COMPILER [FLAGS...]
"""

import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

PROGRAM = re.compile(r"^```cpp\n(?P<code>(?:(?!^```).)*?int main\(.*?)^```\n(?:^```text\n(?P<text>.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def connected(port):
    for _ in range(500):
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=20)
        except ConnectionRefusedError:
            time.sleep(0.01)
    raise AssertionError("the server does not listen")


def talk(program, port, lines):
    with subprocess.Popen([program]) as server:
        try:
            with connected(port) as peer, peer.makefile("rw") as stream:
                for line in lines:
                    if line.startswith("> "):
                        stream.write(line[2:] + "\n")
                        stream.flush()
                    else:
                        answer = stream.readline().rstrip("\n")
                        assert answer == line[2:], (answer, line)
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=20) == 128 + signal.SIGINT
        finally:
            server.kill()


def of_bodies(page):
    """One program of all the bodies, and what it says: behind each a line with its number."""
    prelude = re.search(r"^```cpp prelude\n(.*?)^```\n", page, re.MULTILINE | re.DOTALL)[1]
    snippets = re.findall(r"^```cpp\n(.*?)^```\n^```text\n(.*?)^```\n", page, re.MULTILINE | re.DOTALL)
    assert len(snippets) == len(re.findall("^```cpp$", page, re.MULTILINE)), "a body without its text"
    bodies = "".join(f"void recipe_{i}() {{\n{code}}}\n" for i, (code, _) in enumerate(snippets))
    calls = "".join(f'  recipe_{i}();\n  cout << "-- {i}\\n";\n' for i in range(len(snippets)))
    output = "".join(f"{text}-- {i}\n" for i, (_, text) in enumerate(snippets))
    return f"```cpp\n{prelude}{bodies}int main() {{\n{calls}}}\n```\n```text\n{output}```\n"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    page = pathlib.Path(sys.argv[1]).read_text()
    programs = list(PROGRAM.finditer(of_bodies(page) if "```cpp prelude\n" in page else page))
    assert programs, "no program"
    with tempfile.TemporaryDirectory() as name:
        source, program = pathlib.Path(name) / "program.cpp", f"{name}/program"
        for match in programs:
            port = free_port()
            source.write_text(match["code"].replace("8080", str(port)))
            subprocess.run([*sys.argv[2:3], str(source), "-o", program, *sys.argv[3:]], check=True)
            text = match["text"]
            if text is None:
                continue
            if text.startswith("> "):
                talk(program, port, text.splitlines())
                continue
            output = subprocess.run([program], check=True, capture_output=True, text=True, timeout=20).stdout
            assert output == text, f"said:\n{output}instead of:\n{text}"
    print(f"{len(programs)} programs")


if __name__ == "__main__":
    main()
