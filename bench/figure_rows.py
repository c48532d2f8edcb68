# SPDX-License-Identifier: MIT
"""What figures.py measures: a row each, with its limit, its peers and its target.

A target is a multiple of what something else takes in the same run, on the same machine: of the
limit, or of peers. Only bytes are targets by themselves.
"""

import dataclasses


@dataclasses.dataclass
class Limit:
    """At most so many times the row's limit."""
    times: float

    def of(self, runs):
        return [self.times * runs["limit"]] if "limit" in runs else []


@dataclasses.dataclass
class Peers:
    """At most so many times what each of these peers takes."""
    times: dict

    def of(self, runs):
        return [times * runs[name] for name, times in self.times.items() if name in runs]


@dataclasses.dataclass
class Most:
    """At most that."""
    value: float

    def of(self, _):
        return [self.value]


class BestPeer:
    """At most what the best peer takes."""

    def of(self, runs):
        peers = [value for name, value in runs.items() if name not in ("limit", "motet")]
        return [min(peers)] if peers else []


@dataclasses.dataclass
class Row:
    """One thing that is measured: `args` are WHAT SIZE ITERATIONS of each program."""
    label: str
    args: tuple
    limit: tuple = None  # WHAT SIZE ITERATIONS of limit_program
    target: object = None
    unit: str = "ns"
    programs: dict = None  # of the peers
    backend: str = "io_uring"
    most_rounds: int = 1_000
    cores: str = "0"
    motet: str = "motet_bench"
    limit_program: str = "limit_bench"
    driver: str = None  # a script that is told the directory, a program of it, and `args`


def ring(size, order="ring"):
    return (order, size, 2_000_000)


RING2 = ring(2)
TOKIO = {"tokio": "tokio_bench"}
BOOST = {"Boost.Fiber": "boost_bench"}
TASKS = {**BOOST, **TOKIO}
GO = {"Go": "go_bench", **TOKIO}
SYNC = {"Boost.Fiber": "boost_sync_bench", "Go": "go_bench"}
ALL_SYNC = {**SYNC, **TOKIO}
JOB = {"Asio": "asio_pool_bench", **TOKIO}
POOL = {"Boost.Fiber": "boost_pool_bench", "Go": "go_bench", **JOB}


def talk(label, args, target, programs=None, **options):
    """Fibers that talk to one another."""
    return Row(label, args, RING2, target, programs=ALL_SYNC if programs is None else programs,
               motet="sync_bench", **options)


def work(label, args, target=None, programs=None, motet="pool_bench", **options):
    """Work for other threads; all programs have both processors."""
    return Row(label, args, options.pop("limit", RING2), target,
               programs=POOL if programs is None else programs, cores="0,1", motet=motet, **options)


def way(label, args, target=None, programs=None):
    """Fibers that go where something is, beside threads with a std::mutex."""
    return Row(label, args, RING2, target, cores="0,1", motet="ways_bench",
               programs={"std": "plain_bench"} if programs is None else programs)


LOOPS = {"io_uring": "raw_uring_echo", "libev": "raw_epoll_echo"}
SERVERS = {"libuv": "uv_echo", "Asio": "asio_echo", "Go": "go_echo", "tokio": "tokio_echo"}


def echo(label, kind, connections, backend, target=None, microseconds=500_000, **options):
    """Echoes of 64 bytes, beside the bare loop with the same calls."""
    args = (kind, connections, microseconds)
    return Row(f"{label} ({backend})", args, args, target, backend=backend, cores="0,1",
               limit_program=LOOPS[backend], motet="../examples/echo_server",
               driver="echo_round.py", **options)


FIBERS = [
    Row("snooze, 2 fibers", ("snooze", 2, 2_000_000), RING2, Limit(2.2), programs=TASKS),
    Row("snooze, 1,000", ("snooze", 1_000, 2_000_000), ring(1_000), Limit(2.2), programs=TASKS),
    Row("snooze, 10,000", ("snooze", 10_000, 2_000_000), ring(10_000), Limit(1.5), programs=TASKS),
    Row("snooze, 100,000", ("snooze", 100_000, 2_000_000), ring(100_000), Limit(1.5),
        programs=TASKS),
    Row("snooze, 1,000 in random order", ("snooze_shuffled", 1_000, 2_000_000),
        ring(1_000, "ring_shuffled"), Limit(2.2)),
    Row("snooze, 10,000 in random order", ("snooze_shuffled", 10_000, 2_000_000),
        ring(10_000, "ring_shuffled"), Limit(1.5)),
    Row("snooze, 100,000 in random order", ("snooze_shuffled", 100_000, 2_000_000),
        ring(100_000, "ring_shuffled"), Limit(1.5)),
    Row("snooze, 2, a read and a timer pending (io_uring)", ("snooze_pending", 2, 2_000_000), RING2,
        Limit(2.5)),
    Row("snooze, 2, a read and a timer pending (libev)", ("snooze_pending", 2, 2_000_000), RING2,
        Limit(3), backend="libev"),
    Row("spin + await", ("spin_await", 0, 500_000), ("spin_await", 0, 500_000), Limit(2),
        programs=TASKS),
    Row("100,000 spun, then awaited: warm", ("spun_warm", 100_000, 0), ("spun_warm", 100_000, 0),
        Limit(3), programs=TASKS),
    Row("100,000 spun, then awaited: cold", ("spun_cold", 100_000, 0), ("spun_cold", 100_000, 0),
        Limit(1.5), programs=TASKS),
    Row("a group of 100 spun and awaited, per fiber", ("group_of", 100, 500_000),
        ("spun_warm", 100, 0)),
    Row("a tree of 1,000,000 fibers, ten under one, per fiber", ("tree", 1_000_000, 0), None,
        Peers({"Go": 1}), programs=GO, most_rounds=5),
    Row("wait with a deadline, woken", ("deadline", 0, 500_000), RING2, Limit(20), programs=TASKS),
    Row("the same, 1,000,000 timers armed", ("deadline", 1_000_000, 300_000), RING2, Limit(26),
        most_rounds=3),  # to set them takes long
    Row("time limit entered and left", ("limit_unused", 0, 2_000_000),
        ("heap_push_remove", 0, 2_000_000)),
    Row("the same, 1,000,000 others armed", ("limit_unused", 1_000_000, 1_000_000),
        ("heap_push_remove", 1_000_000, 1_000_000)),
    Row("100,000 sleepers of 1 to 1,000 ms, CPU", ("sleepers", 100_000, 0), None,
        Peers({"Boost.Fiber": 0.6, "Go": 1}), "ms", programs={**BOOST, **GO}),
    Row("throw and catch across a switch", ("throw_across", 0, 200_000),
        ("throw_and_catch", 0, 200_000)),
    Row("100,000 parked, cancelled and awaited, per fiber", ("cancel_parked", 100_000, 0),
        ("throw_on_each", 100_000, 0)),
    Row("resident bytes of a parked fiber", ("memory", 20_000, 0), None, Most(4_400), "bytes",
        programs=BOOST),
]

TALK = [
    talk("channel ping-pong, local", ("ping_pong", 0, 1_000_000), Limit(9.3)),
    talk("channel ping-pong, shared", ("ping_pong", 1, 1_000_000), Limit(16.7)),
    talk("mutex nobody else wants, local", ("mutex_free", 0, 10_000_000), Limit(0.74)),
    talk("mutex nobody else wants, shared", ("mutex_free", 1, 10_000_000), Limit(4.4)),
    talk("mutex, 100 fibers, local", ("mutex_wanted", 0, 1_000_000), Limit(7.4)),
    talk("mutex, 100 fibers, shared", ("mutex_wanted", 1, 1_000_000), Limit(14.8)),
    talk("condition variable, turn and turn about, local", ("condition", 0, 500_000), BestPeer(), SYNC),
    talk("condition variable, turn and turn about, shared", ("condition", 1, 500_000), BestPeer(), SYNC),
    talk("two semaphores, turn and turn about, local", ("semaphores", 0, 1_000_000), BestPeer(), GO),
    talk("two semaphores, turn and turn about, shared", ("semaphores", 1, 1_000_000), BestPeer(), GO),
    talk("select of 4, local", ("select_of_4", 0, 1_000_000), BestPeer(), GO),
    talk("select of 4, shared", ("select_of_4", 1, 1_000_000), BestPeer(), GO),
    talk("select of 8 in a vector, local", ("select_of_range", 0, 1_000_000), BestPeer(), GO),
    talk("select of 8 in a vector, shared", ("select_of_range", 1, 1_000_000), BestPeer(), GO),
    talk("a latch that 10 fibers count down, and their lives, local", ("latches", 0, 100_000), BestPeer(), GO),
    talk("a latch that 10 fibers count down, and their lives, shared", ("latches", 1, 100_000), BestPeer(), GO),
    talk("an item of a broadcast to 10 subscriptions, local", ("broadcasts", 0, 500_000), BestPeer(), GO),
    talk("an item of a broadcast to 10 subscriptions, shared", ("broadcasts", 1, 500_000), BestPeer(), GO),
    talk("a message of 4 producers to 4 consumers, local", ("four_to_four", 0, 1_000_000), BestPeer(), SYNC),
    talk("a message of 4 producers to 4 consumers, shared", ("four_to_four", 1, 1_000_000), BestPeer(), SYNC),
    talk("an actor's answer", ("request", 1, 500_000), BestPeer()),
    talk("channel ping-pong of two threads", ("two_threads", 1, 20_000), Limit(560), cores="0,1"),
]

WORK = [
    work("channel ping-pong of two threads, awake", ("two_threads", 1, 20_000), Limit(560), GO,
         "sync_bench"),
    work("channel ping-pong of two threads, asleep", ("two_threads", 0, 5_000), BestPeer(),
         {"Boost.Fiber": "boost_sync_bench"}, "sync_bench"),
    work("a job, of 1,000,000 that leave their results", ("jobs", 0, 1_000_000), Peers({"Go": 1})),
    work("the same, submitted by a fiber", ("jobs_of_fiber", 0, 1_000_000), None, {}),
    work("the same with one worker", ("jobs", 1, 1_000_000), None, {}),
    work("the same, submitted by a worker", ("jobs_of_worker", 0, 1_000_000), None, {}),
    work("wake-ups per 1,000 of these jobs", ("wakes", 0, 1_000_000), None, {}, limit=None, unit=""),
    work("a job, of 1,000,000 with a future each", ("jobs_futures", 0, 1_000_000),
         Peers({"Go": 0.6})),
    work("a job given and awaited, one at a time", ("one_job", 0, 50_000), Limit(370)),
    work("the slowest 1 % of 5,000 jobs, of which one computes for 50 ms", ("beside_long", 0, 5_000),
         Peers({"Go": 1}), GO, limit=None, unit="us"),
    work("a call to another thread", ("call", 0, 50_000), None, {}),
    work("an offloaded job", ("offload", 0, 20_000), BestPeer(), JOB),
]

# The others' way is another thing, to choose from, and no target.
WAYS = [
    way("a portal to a thread that is awake, and back", ("portal", 1, 100_000)),
    way("a portal to a thread that is asleep, and back", ("portal", 0, 20_000)),
    way("a portal to a thread that is not motet's, and back", ("portal_to_loop", 0, 20_000)),
    way("100 fibers of 2 threads count over a strand", ("strand", 0, 500_000)),
    way("the same with a mutex", ("mutex", 0, 2_000_000)),
    way("timeslice_lock nobody else wants", ("slice_free", 0, 5_000_000)),
    way("the same that another thread always wants", ("slice_wanted", 0, 20_000_000)),
    way("yield_if_due, nobody waits", ("yield_if_due", 0, 50_000_000), Limit(0.74), {}),
]

def connected(count):
    return f"{count:,} connection{'' if count == 1 else 's'}"


# What a bare loop knows, a fiber does not say before it has the answer: that a RECV follows the SEND.
ECHO = [
    *(echo(f"a request, {connected(count)}", "closed", count, backend, Limit(1 / 0.97), unit="us",
           programs=SERVERS if backend == "io_uring" else None)
      for count in (1, 50, 500, 5_000) for backend in LOOPS),
    *(echo(f"the server's processor, a request, {connected(count)}", "cpu", count, backend,
           Limit(1.15), unit="us", programs=SERVERS if backend == "io_uring" else None)
      for count in (1, 50) for backend in LOOPS),
    *(echo(f"system calls of a request, {connected(count)}", "calls", count, backend, Limit(1.005),
           1_500_000, unit="", most_rounds=3)
      for count in (1, 50) for backend in LOOPS),
    *(echo(f"instructions in user space, {connected(count)}", "instructions", count, backend, None,
           1_500_000, unit="", most_rounds=3)
      for count in (1, 50) for backend in LOOPS),
    *(echo(f"the slowest of 1,000 at {share} % of what epoll takes, {connected(50)}",
           f"p999_at_{share}", 50, backend, None, 2_000_000, unit="us", most_rounds=5,
           programs=SERVERS if backend == "io_uring" else None)
      for share in (50, 80) for backend in LOOPS),
]

# Each table: its rows and the picture beside the document.
SETS = {"figures": (FIBERS, "fibers.svg"), "talk": (TALK, "talk.svg"),
        "work": (WORK, "work.svg"), "ways": (WAYS, "ways.svg"), "echo": (ECHO, "echo.svg")}
