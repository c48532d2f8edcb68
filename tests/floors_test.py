#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when an include goes upstairs: each floor of the house uses only what is below it.

usage: floors_test.py SOURCE-ROOT | --self-test
"""

import pathlib
import re
import sys
import tempfile

# Each file lives on exactly one floor.
FLOOR_OF = {
    "runtime/include/motet/backend.hpp": "words",
    "runtime/include/motet/call_site.hpp": "words",
    "runtime/include/motet/clock.hpp": "words",
    "runtime/include/motet/errors.hpp": "words",
    "runtime/include/motet/options.hpp": "words",
    "runtime/include/motet/origin.hpp": "words",
    "runtime/include/motet/detail/abi.hpp": "words",
    "runtime/include/motet/detail/blocking_call.hpp": "words",
    "runtime/include/motet/detail/body.hpp": "words",
    "runtime/include/motet/detail/item_queue.hpp": "words",
    "runtime/include/motet/detail/list.hpp": "words",
    "runtime/include/motet/detail/pending_operation.hpp": "heart",
    "runtime/include/motet/detail/post.hpp": "words",
    "runtime/include/motet/detail/select_branch.hpp": "verbs",
    "runtime/include/motet/detail/states.hpp": "words",
    "runtime/include/motet/detail/timespan.hpp": "words",
    "runtime/include/motet/detail/value_slot.hpp": "words",
    "runtime/closings_elsewhere.hpp": "words",
    "runtime/disabled.hpp": "words",
    "runtime/work_elsewhere.hpp": "words",
    "runtime/errors.cpp": "words",
    "runtime/pch/*": "words",
    "runtime/faults.hpp": "words",
    "runtime/late_backend.hpp": "words",
    "runtime/include/motet/detail/context.hpp": "ground",
    "runtime/include/motet/detail/context/*": "ground",
    "runtime/include/motet/detail/exception_state.hpp": "ground",
    "runtime/include/motet/detail/sanitizers.hpp": "ground",
    "runtime/include/motet/detail/stack.hpp": "ground",
    "runtime/context/*": "ground",
    "runtime/cores.*": "ground",
    "runtime/exception_object.*": "ground",
    "runtime/kept_errno.hpp": "ground",
    "runtime/made_exception.hpp": "ground",
    "runtime/guard.*": "ground",
    "runtime/include/motet/detail/jitter.hpp": "words",
    "runtime/jitter.cpp": "ground",
    "runtime/interrupted_place.*": "ground",
    "runtime/mapping_guard.hpp": "ground",
    "runtime/stack_pool.*": "ground",
    "runtime/tick_clock.*": "ground",
    "runtime/line.hpp": "ground",
    "runtime/ticks.*": "ground",
    "runtime/include/motet/detail/process.hpp": "ground",
    "runtime/include/motet/detail/thread_gate.hpp": "ground",
    "runtime/thread_gate.cpp": "ground",
    "runtime/valgrind.hpp": "ground",
    "runtime/include/motet/detail/await.hpp": "heart",
    "runtime/include/motet/detail/cold_part.hpp": "heart",
    "runtime/include/motet/detail/control_block.hpp": "heart",
    "runtime/include/motet/detail/family.hpp": "heart",
    "runtime/include/motet/detail/handle.hpp": "heart",
    "runtime/include/motet/detail/launch.hpp": "heart",
    "runtime/include/motet/detail/locals.hpp": "heart",
    "runtime/include/motet/detail/run_queue.hpp": "heart",
    "runtime/include/motet/detail/token.hpp": "heart",
    "runtime/include/motet/detail/scope.hpp": "heart",
    "runtime/include/motet/detail/self.hpp": "heart",
    "runtime/include/motet/detail/co_owned.hpp": "heart",
    "runtime/include/motet/detail/sharing.hpp": "heart",
    "runtime/include/motet/detail/shelter.hpp": "heart",
    "runtime/include/motet/detail/stop_scope.hpp": "heart",
    "runtime/include/motet/detail/switchpoint.hpp": "heart",
    "runtime/include/motet/detail/timer.hpp": "heart",
    "runtime/timer_heap.hpp": "heart",
    "runtime/timer_queue.hpp": "heart",
    "runtime/include/motet/detail/wait_record.hpp": "heart",
    "runtime/include/motet/detail/waiter.hpp": "heart",
    "runtime/include/motet/detail/wait_list.hpp": "heart",
    "runtime/block_pool.*": "heart",
    "runtime/spare_mappings.hpp": "ground",
    "runtime/deadlock.cpp": "heart",
    "runtime/deliver.cpp": "heart",
    "runtime/dump.cpp": "heart",
    "runtime/dump_signal.*": "heart",
    "runtime/errand.*": "heart",
    "runtime/family.cpp": "heart",
    "runtime/family_links.hpp": "heart",
    "runtime/group_ends.cpp": "heart",
    "runtime/file_call.*": "heart",
    "runtime/foreign_requests.hpp": "heart",
    "runtime/fork.cpp": "heart",
    "runtime/guests.*": "heart",
    "runtime/foreign_backend.hpp": "ground",
    "runtime/foreign_visit.hpp": "heart",
    "runtime/arrival.cpp": "verbs",
    "runtime/baggage.cpp": "verbs",
    "runtime/executors.cpp": "verbs",
    "runtime/visit.hpp": "verbs",
    "runtime/forward.cpp": "verbs",
    "runtime/journey.*": "verbs",
    "runtime/station.cpp": "verbs",
    "runtime/timeslice_lock.cpp": "verbs",
    "runtime/include/motet/timeslice_lock.hpp": "verbs",
    "runtime/traveller.hpp": "heart",
    "runtime/include/motet/detail/arrival.hpp": "verbs",
    "runtime/include/motet/executor.hpp": "verbs",
    "runtime/job_inbox.*": "heart",
    "runtime/include/motet/detail/heirlooms.hpp": "heart",
    "runtime/include/motet/detail/job.hpp": "heart",
    "runtime/include/motet/detail/job_slot.hpp": "heart",
    "runtime/guest_calls.cpp": "verbs",
    "runtime/job_starter.cpp": "verbs",
    "runtime/thread.cpp": "verbs",
    "runtime/thread_pool.cpp": "verbs",
    "runtime/pool_state.*": "verbs",
    "runtime/include/motet/thread_pool.hpp": "verbs",
    "runtime/include/motet/detail/pool_task.hpp": "verbs",
    "runtime/thread_link.hpp": "verbs",
    "runtime/include/motet/thread.hpp": "verbs",
    "runtime/in_flight.hpp": "heart",
    "runtime/interrupt.cpp": "heart",
    "runtime/launch.cpp": "verbs",
    "runtime/life.cpp": "heart",
    "runtime/local.cpp": "heart",
    "runtime/mailbox.*": "heart",
    "runtime/offload_room.*": "heart",
    "runtime/offload_threads.*": "heart",
    "runtime/origin.cpp": "heart",
    "runtime/origins.hpp": "heart",
    "runtime/overflow.*": "heart",
    "runtime/perform.cpp": "heart",
    "runtime/poll.cpp": "heart",
    "runtime/reaper.cpp": "heart",
    "runtime/resume_wait.hpp": "heart",
    "runtime/speaker.hpp": "heart",
    "runtime/switchpoint.cpp": "heart",
    "runtime/roster.*": "heart",
    "runtime/thread_state.*": "heart",
    "runtime/unhandled.*": "heart",
    "runtime/waiter.cpp": "heart",
    "runtime/waiting_awake.hpp": "ground",
    "runtime/include/motet/detail/awaitable.hpp": "verbs",
    "runtime/include/motet/detail/offloaded.hpp": "verbs",
    "runtime/include/motet/detail/race.hpp": "verbs",
    "runtime/include/motet/detail/turn.hpp": "verbs",
    "runtime/include/motet/await.hpp": "verbs",
    "runtime/include/motet/cancel.hpp": "verbs",
    "runtime/include/motet/debug.hpp": "verbs",
    "runtime/include/motet/fd.hpp": "verbs",
    "runtime/include/motet/fiber.hpp": "verbs",
    "runtime/include/motet/group.hpp": "verbs",
    "runtime/include/motet/io.hpp": "verbs",
    "runtime/include/motet/local.hpp": "verbs",
    "runtime/include/motet/channel.hpp": "verbs",
    "runtime/include/motet/condition_variable.hpp": "verbs",
    "runtime/include/motet/event.hpp": "verbs",
    "runtime/include/motet/mutex.hpp": "verbs",
    "runtime/include/motet/notification.hpp": "verbs",
    "runtime/include/motet/recursive_mutex.hpp": "verbs",
    "runtime/include/motet/semaphore.hpp": "verbs",
    "runtime/include/motet/shared_mutex.hpp": "verbs",
    "runtime/include/motet/actor.hpp": "verbs",
    "runtime/include/motet/dns.hpp": "verbs",
    "runtime/include/motet/every.hpp": "verbs",
    "runtime/include/motet/future.hpp": "verbs",
    "runtime/include/motet/offload.hpp": "verbs",
    "runtime/include/motet/rate_limiter.hpp": "verbs",
    "runtime/include/motet/resource_pool.hpp": "verbs",
    "runtime/include/motet/select.hpp": "verbs",
    "runtime/include/motet/motet.hpp": "verbs",
    "runtime/include/motet/net.hpp": "verbs",
    "runtime/include/motet/net/*": "verbs",
    "runtime/include/motet/run.hpp": "verbs",
    "runtime/include/motet/supervise.hpp": "verbs",
    "runtime/include/motet/suspend.hpp": "verbs",
    "runtime/include/motet/time.hpp": "verbs",
    "runtime/abroad.*": "verbs",
    "runtime/await.cpp": "verbs",
    "runtime/deadline.hpp": "heart",
    "runtime/debug.cpp": "verbs",
    "runtime/distant_awaiter.*": "verbs",
    "runtime/dns.cpp": "verbs",
    "runtime/fd.cpp": "verbs",
    "runtime/fiber.cpp": "verbs",
    "runtime/group.cpp": "verbs",
    "runtime/io.cpp": "verbs",
    "runtime/net/*": "verbs",
    "runtime/offload.cpp": "verbs",
    "runtime/operations.hpp": "verbs",
    "runtime/race.cpp": "verbs",
    "runtime/run.cpp": "verbs",
    "runtime/scope.cpp": "verbs",
    "runtime/select.cpp": "verbs",
    "runtime/stop_scope.cpp": "verbs",
    "runtime/supervise.cpp": "verbs",
    "runtime/supervisor.*": "verbs",
    "runtime/suspend.cpp": "verbs",
    "runtime/sync.cpp": "verbs",
    "runtime/time.cpp": "verbs",
    "runtime/turn.cpp": "verbs",
    "backends/attempt.*": "backends",
    "backends/exact_wait.hpp": "backends",
    "backends/io_uring.cpp": "backends",
    "backends/kept_watchers.hpp": "backends",
    "backends/kernel_ring.hpp": "backends",
    "backends/libev.cpp": "backends",
    "backends/retries.hpp": "backends",
    "backends/sigpipe.hpp": "backends",
    "backends/sim.cpp": "backends",
    "backends/uring_entry.hpp": "backends",
    "backends/backends.hpp": "choice",
    "backends/factories.hpp.in": "backends",
    "backends/select.cpp": "choice",
    "tests/**/*": "users",
    "examples/**/*": "users",
}

MAY_INCLUDE = {
    "words": {"words"},
    "ground": {"ground", "words"},
    "heart": {"heart", "ground", "words"},
    "verbs": {"verbs", "choice", "heart", "ground", "words"},
    "backends": {"backends", "words"},
    "choice": {"choice", "words", "backends"},
    "users": {"users"},  # and every public header
}

PUBLIC = ("runtime/include/",)
LOOK_INSIDE = {"tests/awake_test.cpp", "tests/choice_test.cpp", "tests/clock_test.cpp", "tests/bench/limit_bench.cpp", "tests/bench/choice_bench.cpp",
               "tests/context_test.cpp", "tests/faults_test.cpp", "tests/backend_test.cpp", "tests/offload_test.cpp",
               "tests/timer_queue_test.cpp"}  # may see private headers
GENERATED = {"factories.hpp"}
HOUSED = ("runtime", "backends", "tests", "examples")
SOURCES = {".cpp", ".hpp", ".h", ".S", ".inc", ".in"}
LONG = 300

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def floors(root):
    """The floors of each source file, by its path from the root."""
    found = {
        path.relative_to(root).as_posix(): []
        for house in HOUSED
        for path in sorted((root / house).rglob("*"))
        if path.suffix in SOURCES
    }
    for pattern, floor in FLOOR_OF.items():
        for path in root.glob(pattern):
            name = path.relative_to(root).as_posix()
            if name in found:
                found[name].append(floor)
    return found


def resolve(root, file, quote, include):
    """The path of what is included; None when it is not ours, "" when it is nowhere."""
    if quote == "<":
        if not include.startswith("motet/"):
            return None
        places = [root / "runtime/include"]
    else:
        if include in GENERATED:
            return None
        places = [(root / file).parent, root / "runtime", root / "runtime/include", root / "backends"]
    for place in places:
        path = (place / include).resolve()
        if path.is_file() and path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return ""


def check(root):
    """What is wrong in the tree, a sentence each."""
    root = root.resolve()
    floors_of = floors(root)
    for file, own in floors_of.items():
        if len(own) != 1:
            yield f"{file}: must be on one floor, is on {', '.join(own) or 'none'}"
            continue
        for quote, include in INCLUDE.findall((root / file).read_text()):
            target = resolve(root, file, quote, include)
            if target is None:
                continue
            if target == "":
                yield f"{file}: includes {include}, which is nowhere"
                continue
            if own == ["users"] and (target.startswith(PUBLIC) or file in LOOK_INSIDE):
                continue
            for floor in floors_of.get(target, []):
                if floor not in MAY_INCLUDE[own[0]]:
                    yield f"{file} ({own[0]}) includes {target} ({floor})"


def long_files(root):
    for house in ("runtime", "backends"):
        for path in sorted((root / house).rglob("*")):
            if path.suffix in SOURCES:
                lines = path.read_text().count("\n")
                if lines > LONG:
                    yield f"{path.relative_to(root)}: {lines} lines"


def self_test():
    """Builds a small house, and then climbs its stairs in every way that must be noticed."""
    house = {
        "runtime/include/motet/errors.hpp": "#include <string>\n",
        "runtime/include/motet/fiber.hpp": "#include <motet/errors.hpp>\n",
        "runtime/stack_pool.hpp": '#include "motet/errors.hpp"\n',
        "runtime/switchpoint.cpp": '#include "stack_pool.hpp"\n',
        "runtime/context/x86_64.cpp": '#include "../stack_pool.hpp"\n#include "stack_pool.hpp"\n',
        "backends/sim.cpp": "#include <motet/errors.hpp>\n",
        "backends/select.cpp": '#include "factories.hpp"\n',
        "tests/support.hpp": "#include <motet/fiber.hpp>\n",
        "tests/bench/echo_bench.cpp": '#include "../support.hpp"\n',
        "examples/hello.cpp": "#include <motet/fiber.hpp>\n",
    }
    climbs = {
        "runtime/stack_pool.hpp": "#include <motet/fiber.hpp>\n",
        "runtime/include/motet/errors.hpp": '#  include "stack_pool.hpp"\n',
        "runtime/context/x86_64.cpp": '#include "../switchpoint.cpp"\n',
        "backends/sim.cpp": "#include <motet/fiber.hpp>\n",
        "examples/hello.cpp": '#include "../runtime/stack_pool.hpp"\n',
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
    for name, text in climbs.items():
        found = problems(house | {name: text})
        assert len(found) == 1 and found[0].startswith(name), (name, found)


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    for warning in long_files(root):
        print(f"warning: {warning}, more than {LONG}")
    problems = list(check(root))
    print(*problems, sep="\n")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
