#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when an include goes upstairs or in a circle: each room stands on those below it.

usage: floors_test.py SOURCE-ROOT | --self-test
"""

import pathlib
import re
import sys
import tempfile

# From the ground up. A room's files lie in runtime/ROOM and runtime/include/motet/detail/ROOM, and
# include what is in the same room or below.
ROOMS = [
    "base",
    "platform",
    "core",
    "unhandled",
    "cancellation",
    "sync",
    "fibers",
    "threads",
    "io",
    "runtime",
    "migration",
    "observe",
    "tls",
    "http",
    "posix",
    "testing",
    "boost_fiber",
]
# Above which a room also uses the public headers, as any program does.
LAST_WITHOUT_PUBLIC = "unhandled"
# Fills in what rooms call in rooms above them: see runtime/core/hooks.hpp.
TOP = {"runtime/hooks.cpp", "runtime/rooms.hpp.in"}
# The public headers that even the lowest rooms use.
BASE = {
    "base/call_site.hpp", "base/clock.hpp", "base/errors.hpp", "base/version.hpp", "cancellation/cancel_reason.hpp",
    "fibers/fiber_state.hpp", "fibers/origin.hpp", "runtime/backend.hpp", "runtime/options.hpp"}

# The tests and tools that look at private headers.
LOOK_INSIDE = {
    "tests/backends/choice_test.cpp",
    "tests/backends/completion_test.cpp",
    "tests/backends/kernel_ring_test.cpp",
    "tests/backends/machine.hpp",
    "tests/backends/transfer_test.cpp",
    "bench/choice_bench.cpp",
    "bench/limit_bench.cpp",
    "tests/fuzz/http_response_fuzz.cpp",
    "tests/fuzz/serve_fuzz.cpp",
    "tests/platform/adaptive_spin_test.cpp",
    "tests/testing/guide_bugs_test.cpp",
    "tests/platform/context_test.cpp",
    "tests/platform/cores_test.cpp",
    "tests/platform/guards.hpp",
    "tests/platform/blocking_pool_test.cpp",
    "tests/platform/tick_clock_test.cpp",
    "tests/platform/workers.hpp",
    "tests/core/core_test.cpp",
    "tests/core/timer_queue_test.cpp",
    "tests/core/timer_slack_test.cpp",
    "tests/explorer/explore.hpp",
    "tests/explorer/loop_model_test.cpp",
    "tests/explorer/mailbox_model_test.cpp",
    "tests/explorer/offload_model_test.cpp",
    "tests/explorer/runtime.hpp",
    "tests/explorer/threads.hpp",
    "tests/io/copy_test.cpp",
    "tests/io/happy_eyeballs_test.cpp",
    "tests/io/process_test.cpp",
    "tests/whole/faults_test.cpp",
    "tools/trace/trace_reader.hpp",
}
GENERATED = {"factories.hpp", "rooms.hpp"}
# What the library includes in the build whose atomics the explorer chooses.
EXPLORED = {"explorer/atomic.hpp"}
HOUSED = ("runtime", "backends", "tests", "examples", "tools", "bench")
SOURCES = {".cpp", ".hpp", ".h", ".S", ".inc", ".in"}
MOST_LINES = 300
MOST_FILES = 26
# What a program includes as <motet/...> keeps its path.
PUBLIC = ("runtime/include/motet", "runtime/boost_fiber/include")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def room_of(file):
    """The room of a file: one of ROOMS, or public, backends or users; None if it is in none."""
    if file in TOP:
        return ROOMS[-1]
    house, *rest = file.split("/")
    if house in ("tests", "examples", "tools", "bench"):
        return "users"
    if house == "backends":
        return "backends"
    if rest[:3] == ["include", "motet", "detail"]:
        room = rest[3]
    elif rest[:2] == ["include", "motet"]:
        return "base" if "/".join(rest[2:]) in BASE else "public"
    else:
        room = "base" if rest[0] == "pch" else rest[0]
    return room if room in ROOMS else None


def may_include(file, target):
    room, target_room = room_of(file), room_of(target)
    if room == "users":
        return target_room == "users" or target.startswith(PUBLIC) or file in LOOK_INSIDE
    if file.startswith(PUBLIC) and not target.startswith(PUBLIC):
        return False
    if room == "public":
        return True
    if room == "backends":
        return target_room in ("backends", "base")
    if target_room == "backends":
        return room == "runtime" and target == "backends/backends.hpp"
    if target_room == "public":
        return ROOMS.index(room) > ROOMS.index(LAST_WITHOUT_PUBLIC)
    return target_room in ROOMS and ROOMS.index(target_room) <= ROOMS.index(room)


def resolve(root, file, quote, include):
    """The path of what is included; None when it is not ours, "" when it is nowhere."""
    if quote == "<":
        if not include.startswith("motet/"):
            return None
        places = [root / "runtime/include", root / "runtime/boost_fiber/include"]
    elif include in GENERATED | EXPLORED:
        return None
    elif file.startswith("runtime/"):
        places = [root / "runtime", root / "backends"]
    else:
        places = [(root / file).parent, root / "tests", root / "runtime", root / "backends"]
    for place in places:
        path = (place / include).resolve()
        if path.is_file() and path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return ""


def sources(root):
    for house in HOUSED:
        for path in sorted((root / house).rglob("*")):
            if path.suffix in SOURCES:
                yield path.relative_to(root).as_posix()


def includes(root):
    """What each source file includes of the project: paths, and None for what is nowhere."""
    result = {}
    for file in sources(root):
        result[file] = []
        for quote, include in INCLUDE.findall((root / file).read_text()):
            target = resolve(root, file, quote, include)
            if target is not None:
                result[file].append((include, target))
    return result


def circles(graph):
    """Each circle of includes once, as the list of its files."""
    visited, circles = set(), []

    def walk(file, path):
        if file in path:
            circles.append(path[path.index(file):] + [file])
        elif file not in visited:
            for _, target in graph.get(file, []):
                walk(target, path + [file])
            visited.add(file)

    for file in graph:
        walk(file, [])
    return circles


def check(root):
    """What is wrong in the tree, a sentence each."""
    root = root.resolve()
    graph = includes(root)
    for file, targets in graph.items():
        if room_of(file) is None:
            yield f"{file}: is in no room"
            continue
        for include, target in targets:
            if target == "":
                yield f"{file}: includes {include}, which is nowhere"
            elif not may_include(file, target):
                yield f"{file} ({room_of(file)}) includes {target} ({room_of(target)})"
    for circle in circles(graph):
        yield f"a circle: {' -> '.join(circle)}"


def crowded(root):
    """Rooms with too many files, and files with too many lines, a sentence each."""
    for house in ("runtime", "backends"):
        for path in sorted((root / house).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.is_dir():
                files = sum(file.suffix in SOURCES for file in path.iterdir())
                if files > MOST_FILES and name not in PUBLIC:
                    yield f"{name}: {files} files, more than {MOST_FILES}"
            elif path.suffix in SOURCES:
                lines = path.read_text().count("\n")
                if lines > MOST_LINES:
                    yield f"{name}: {lines} lines, more than {MOST_LINES}"


def self_test():
    """Builds a small house, and then makes each mistake in it that must be noticed."""
    house = {
        "runtime/include/motet/base/errors.hpp": "#include <string>\n",
        "runtime/include/motet/fibers/fiber.hpp": "#include <motet/detail/core/handle.hpp>\n",
        "runtime/include/motet/detail/core/handle.hpp": "#include <motet/base/errors.hpp>\n",
        "runtime/platform/stack_pool.hpp": "#include <motet/base/errors.hpp>\n",
        "runtime/core/mailbox.hpp": '#include "platform/stack_pool.hpp"\n',
        "runtime/core/context/x86_64.cpp": '#include "core/mailbox.hpp"\n',
        "runtime/runtime/run.cpp": '#include "backends.hpp"\n#include <motet/fibers/fiber.hpp>\n',
        "backends/backends.hpp": "#include <motet/base/errors.hpp>\n",
        "backends/backends.cpp": '#include "factories.hpp"\n',
        "tests/support.hpp": "#include <motet/fibers/fiber.hpp>\n",
        "bench/echo_bench.cpp": '#include "support.hpp"\n',
        "examples/hello.cpp": "#include <motet/fibers/fiber.hpp>\n",
    }
    mistakes = {
        "runtime/platform/stack_pool.hpp": "#include <motet/fibers/fiber.hpp>\n",
        "runtime/platform/guard.cpp": '#include "core/mailbox.hpp"\n',
        "runtime/include/motet/base/clock.hpp": '#  include "platform/stack_pool.hpp"\n',
        "runtime/include/motet/fibers/fiber.hpp": '#include "core/mailbox.hpp"\n',
        "runtime/core/switchpoint.cpp": '#include "backends.hpp"\n',
        "runtime/core/poll.cpp": '#include "mailbox.hpp"\n',
        "backends/sim.cpp": "#include <motet/fibers/fiber.hpp>\n",
        "examples/hello.cpp": '#include "../runtime/platform/stack_pool.hpp"\n',
        "tests/support.hpp": "#include <motet/nowhere.hpp>\n",
        "runtime/homeless.cpp": "int a;\n",
    }

    def problems(files):
        with tempfile.TemporaryDirectory() as place:
            root = pathlib.Path(place)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return list(check(root))

    assert problems(house) == [], problems(house)
    for name, text in mistakes.items():
        complaints = problems(house | {name: text})
        assert len(complaints) == 1 and complaints[0].startswith(name), (name, complaints)
    complaints = problems(house | {"runtime/core/a.hpp": '#include "core/b.hpp"\n',
                                   "runtime/core/b.hpp": '#include "core/a.hpp"\n'})
    assert len(complaints) == 1 and complaints[0].startswith("a circle: runtime/core/a.hpp"), complaints


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    for warning in crowded(root):
        print(f"warning: {warning}")
    problems = list(check(root))
    print(*problems, sep="\n")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
