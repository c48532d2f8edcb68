#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What dumps tell of fibers: runs dump_programs and reads the text and the JSON.

usage: dump_test.py PROGRAM
"""

import json
import os
import re
import subprocess
import sys

PATIENCE = 300 if os.environ.get("MOTET_TEST_SCALE") == "full" else 30
# What a program finds in its own frames, if it exports its functions.
FRAME = re.compile(r"  \S*?\((.*)\+0x[0-9a-f]+\) \[0x[0-9a-f]+\]")


def written_by(path, name):
    result = subprocess.run([path, name], stdout=subprocess.PIPE, text=True, timeout=PATIENCE)
    assert result.returncode == 0, f"{name} ended with {result.returncode}: {result.stdout}"
    return result.stdout


def paragraphs(text):
    """Each line about a fiber, or a group, with the lines of its stack."""
    paragraphs_ = []
    for line in text.splitlines():
        if line.startswith("  "):
            paragraphs_[-1][1].append(line)
        else:
            paragraphs_.append((line, []))
    return paragraphs_


def stack_of(text, pattern):
    stacks = [stack for line, stack in paragraphs(text) if re.search(pattern, line)]
    assert len(stacks) == 1, f"{len(stacks)} lines like {pattern} in:\n{text}"
    return stacks[0]


def functions(stack):
    return [match[1] for line in stack if (match := FRAME.match(line))]


def in_order(names, *expectations):
    """Whether these are among the names, the innermost first."""
    rest = iter(names)
    return all(any(want in name for name in rest) for want in expectations)


def each_fiber_has_its_stack(path):
    text = written_by(path, "stacks")
    for name in ("sleeper", "thrown"):
        names = functions(stack_of(text, f'"{name}" waiting: sleep'))
        assert in_order(names, "sleeps_soundly", "calls_a_sleeper"), (names, text)
    assert in_order(functions(stack_of(text, "waiting: read")), "reads_for_ever"), text
    assert in_order(functions(stack_of(text, "fiber 1 running")), "dumps", "main"), text
    frames = functions(stack_of(text, '"deep" waiting: suspend'))
    assert len(frames) == 64 and frames.count("goes_down") > 50, frames
    assert stack_of(text, '"newcomer" runnable') == ["  not started"], text


def json_says_the_same(path):
    dump = json.loads(written_by(path, "json"))
    (thread,) = dump["threads"]
    fibers = {fiber.get("name", ""): fiber for fiber in thread["fibers"]}
    assert set(fibers) == {"", "sleeper", 'a "reader"\n', "deep", "thrown", "newcomer"}, fibers
    reader, newcomer, main = fibers['a "reader"\n'], fibers["newcomer"], fibers[""]
    assert reader["state"] == "waiting" and reader["wait"] == "read", reader
    assert reader["subject"] > 2 and reader["waited_ms"] >= 0, reader
    assert reader["parent"] == main["id"] and "parent" not in main, reader
    assert re.search(r"dump_programs.cpp:\d+$", reader["site"]), reader
    assert any("reads_for_ever+" in frame for frame in reader["stack"]), reader
    assert newcomer["state"] == "runnable" and newcomer["stack"] == [], newcomer
    assert main["state"] == "running" and "site" not in main, main


def a_crowd_is_told_by_site(path):
    text, _, rest = written_by(path, "crowd").partition('{"threads"')
    stack = stack_of(text, r"^3000 fibers spun at \S+dump_programs.cpp:\d+: 3000 waiting \(sleep\); "
                           r"the longest wait \d+ ms$")
    assert in_order(functions(stack), "sleeps_soundly", "calls_a_sleeper"), stack
    stack_of(text, r"^5 fibers spun at \S+: 5 runnable$")
    stack_of(text, r"^1 fiber, the main one: 1 running$")
    assert len(paragraphs(text)) == 3, text
    groups = json.loads('{"threads"' + rest)["threads"][0]["groups"]
    assert [group["fibers"] for group in groups] == [3000, 5, 1], groups
    assert groups[0]["does"] == [{"fibers": 3000, "state": "waiting", "wait": "sleep"}], groups
    assert any("sleeps_soundly" in frame for frame in groups[0]["stack"]), groups


def all_threads_tell_but_one_that_computes(path):
    """The others have a second for their answer, which a busy machine may not give them: so three tries."""
    for tries_left in (2, 1, 0):
        text = written_by(path, "threads")
        stuck = re.findall(r"^motet: thread \d+ has not answered: .*$", text, re.MULTILINE)
        threads = json.loads(written_by(path, "threads_as_json"))["threads"]
        if len(stuck) == 1 and sum("error" in thread for thread in threads) == 1:
            break
        assert stuck and tries_left > 0, text
    assert len(re.findall(r"^motet: thread \d+ has these fibers:$", text, re.MULTILINE)) == 3, text
    names = functions(stack_of(text, '"dozer" waiting: sleep'))
    assert in_order(names, "sleeps_soundly", "calls_a_sleeper"), text
    stack_of(text, '"busy" ')
    assert len({thread["thread"] for thread in threads}) == 4, threads
    assert [thread["error"] for thread in threads if "error" in thread] == ["no answer"], threads


def threads_that_ask_one_another(path):
    assert written_by(path, "ask_one_another") == "done\n"


def without_a_runtime_there_is_nothing(path):
    assert json.loads(written_by(path, "nothing")) == {"threads": []}


TESTS = [each_fiber_has_its_stack, json_says_the_same, a_crowd_is_told_by_site,
         all_threads_tell_but_one_that_computes, threads_that_ask_one_another,
         without_a_runtime_there_is_nothing]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for test in TESTS:
        test(sys.argv[1])
        print(f"ok: {test.__name__}")


if __name__ == "__main__":
    main()
