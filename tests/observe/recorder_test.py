#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is recorded says who ran, and why others were late: runs recorder_programs, and motet-trace on
what they leave behind.

usage: recorder_test.py PROGRAMS MOTET-TRACE [--timed]
"""

import os
import pathlib
import random
import re
import resource
import struct
import subprocess
import sys
import tempfile
import time
import xml.dom.minidom

PATIENCE = 55
KILLED = -9


class Recorder:
    """One of the programs, run in a directory of its own."""

    def __init__(self, programs, reader, where):
        self.programs, self.reader, self.where = programs, reader, pathlib.Path(where)

    def run(self, name, status=0, **environment):
        done = subprocess.run([self.programs, name], capture_output=True, text=True, timeout=PATIENCE,
                              cwd=self.where, env={**os.environ, **environment})
        assert done.returncode == status, f"{name} ended with {done.returncode}: {done.stderr}"
        return done.stdout, done.stderr

    def read(self, *arguments, status=0):
        done = subprocess.run([self.reader, *arguments], capture_output=True, text=True,
                              timeout=PATIENCE, cwd=self.where)
        assert done.returncode == status, f"{arguments}: {done.returncode}, {done.stderr}"
        return done.stdout if status == 0 else done.stderr

    def told(self, name, status=0, **environment):
        self.run(name, status, **environment)
        return self.read("trace")


def section(text, title):
    """The lines under a title."""
    found = re.search(rf"^{re.escape(title)}:\n((?:  .*\n)+)", text, re.MULTILINE)
    assert found, (title, text)
    return found[1]


def a_fiber_behind_another(recorder):
    late = section(recorder.told("hog"), "Late")
    found = re.search(r"fiber \d+ \(GET /x, spun at recorder_programs.cpp:\d+\) was late by (\d+)\.\d ms: runnable "
                      r"behind parse_job \(recorder_programs.cpp:\d+\), which ran (\d+)\.\d ms without a switchpoint", late)
    assert found and int(found[1]) >= 39 and int(found[2]) >= 39, late


def a_late_timer(recorder):
    told = recorder.told("late_timer")
    late = section(told, "Late")
    found = re.search(r"\(sleeper, spun at \S+\) was late by (\d+)\.\d ms: its sleep, or its limit, was over, and it "
                      r"stood behind parse_job \(\S+\), which ran \d+\.\d ms without a switchpoint", late)
    assert found and 25 <= int(found[1]), late
    longest = re.search(r"(\d+)\.\d ms: fiber \d+ \(parse_job, ", section(told, "Longest turns, without a switchpoint"))
    assert longest and int(longest[1]) >= 39, told


def a_blocking_call(recorder):
    late = section(recorder.told("blocking_read"), "Late")
    assert re.search(r"\(GET /x, .*runnable behind reader \(\S+\), which ran \d+\.\d ms without", late), late


def a_name_for_each_request(recorder):
    longest = section(recorder.told("renamed"), "Longest turns, without a switchpoint")
    assert re.search(r"\d\d\.\d ms: fiber \d+ \(GET /slow, spun at", longest), longest


def a_lock_that_was_free(recorder):
    waited = section(recorder.told("lock_now_and_then"), "Waited for")
    kept = re.search(r"lock of a mutex .*: 2 waits, .*; longest kept by .*\(customer, .*\), for (\d+)\.\d ms", waited)
    assert kept and int(kept[1]) < 150, waited


def a_traveller(recorder):
    told = recorder.told("traveller")
    longest = section(told, "Longest turns, without a switchpoint")
    found = re.search(r"\d\d\.\d ms: fiber \d+ \(traveller, spun at \S+\), on thread (\d+),", longest)
    main_thread = re.match(r"process (\d+)", told)[1]
    assert found and found[1] != main_thread, told


def a_convoy(recorder):
    waited = section(recorder.told("convoy"), "Waited for")
    found = re.search(r"lock of a mutex 0x[0-9a-f]+: 8 waits, (\d+)\.\d ms in all, (\d+)\.\d ms at the most; longest "
                      r"kept by fiber \d+ \(keeper, spun at \S+\), for (\d+)\.\d ms", waited)
    assert found and int(found[1]) >= 8 * 39 and int(found[2]) >= 39 and int(found[3]) >= 39, waited


def a_killed_process(recorder):
    waiting = section(recorder.told("killed_with_a_leak", KILLED), "Waiting at the end")
    found = re.search(r"fiber \d+ \(leaked, spun at \S+\): suspend, for (\d+)\.\d ms", waiting)
    assert found and int(found[1]) >= 25, waiting


def a_deadlock(recorder):
    waiting = section(recorder.told("deadlock_of_three", KILLED), "Waiting at the end")
    for i in range(3):
        assert re.search(rf"\(philosopher {i}, .*\): lock of a mutex", waiting), waiting


def a_ring_that_goes_round(recorder):
    told = recorder.told("long_life")
    assert "what was before is lost" in told, told
    # Nobody has lost his name, though it was told long ago.
    assert re.search(r"spun at recorder_programs.cpp:\d+", section(told, "Time of fibers")), told
    assert "nothing is known" not in told, told
    picture = recorder.where / "picture.svg"
    recorder.read("--svg", "picture.svg", "trace")
    text = picture.read_text()
    assert ">ping (recorder_programs.cpp:" in text and ">pong (" in text, text


def cancellations(recorder):
    assert ", 1 interrupted" in recorder.told("cancellations")


class Fxt:
    """What a reader of Fuchsia's format makes of a file."""

    def __init__(self, data):
        assert data[:8] == struct.pack("<Q", 0x0016547846040010), data[:8]
        self.words = struct.unpack(f"<{len(data) // 8}Q", data)
        self.data, self.strings, self.threads, self.names = data, {0: ""}, {}, {}
        self.turns, self.begins, self.ends = [], {}, {}
        at = 1
        while at < len(self.words):
            size = self.words[at] >> 4 & 0xfff
            assert size > 0 and at + size <= len(self.words), (at, size)
            self.take(at, size)
            at += size

    def take(self, at, size):
        header = self.words[at]
        kind = header & 15
        if kind == 2:
            length = header >> 32 & 0x7fff
            assert size == 1 + (length + 7) // 8
            self.strings[header >> 16 & 0x7fff] = self.data[8 * at + 8:8 * at + 8 + length].decode()
        elif kind == 3:
            self.threads[header >> 16 & 0xff] = self.words[at + 2]
        elif kind == 4:
            self.take_event(at, size, header)
        elif kind == 7 and header >> 16 & 0xff == 2:
            self.names[self.words[at + 1]] = self.strings[header >> 24 & 0xffff]
        else:
            assert kind in (0, 1, 7), kind

    def take_event(self, at, size, header):
        event, thread, when = header >> 16 & 15, self.threads[header >> 24 & 0xff], self.words[at + 1]
        name = self.strings[header >> 48]
        last = self.words[at + size - 1]
        if event == 4:
            assert last >= when
            self.turns.append((thread, when, last, name))
        elif event == 8:
            self.begins[last] = (thread, when)
        else:
            assert event == 10, event
            self.ends[last] = (thread, when)


def messages_of_two_threads(recorder):
    told = recorder.told("messages")
    assert re.search(r"by other threads [1-9]", told), told
    recorder.read("--fxt", "out.fxt", "trace")
    fxt = Fxt((recorder.where / "out.fxt").read_bytes())
    threads = set(fxt.names)
    assert len(threads) == 2 and all(name.startswith("thread ") for name in fxt.names.values()), fxt.names
    assert fxt.begins.keys() == fxt.ends.keys()
    across = [key for key in fxt.begins if fxt.begins[key][0] != fxt.ends[key][0]]
    assert len(across) >= 10, fxt.begins
    # An arrow leads from within a turn to the beginning of a turn.
    for key in across:
        thread, when = fxt.begins[key]
        assert any(on == thread and begin <= when <= end for on, begin, end, _ in fxt.turns), key
        thread, when = fxt.ends[key]
        assert any(on == thread and begin <= when <= end for on, begin, end, _ in fxt.turns), key
        assert fxt.begins[key][1] <= fxt.ends[key][1], key


def snapshots(recorder):
    for program, cause in (("missed_deadline", "deadline"), ("failure", "failure"), ("stall", "stall"),
                           ("dump_signal", "signal")):
        recorder.run(program)
        recorder.read("trace")
        assert re.match(r"process \d+: [\d,]+ records? of 1 thread\n", recorder.read(f"trace.{cause}-1")), cause


def copies_of_what_goes_on(recorder):
    out, _ = recorder.run("saved_while_busy")
    assert out == "saved\n", out
    # The thread may have gone round its ring while it was copied; then little is left, or nothing.
    told = [recorder.read(f"copy-{i}") for i in range(10)]
    assert all(re.match(r"process \d+: [\d,]+ records? of 1 thread\n", each) for each in told), told
    assert any(re.search(r" turns: spun at recorder_programs.cpp:\d+\n", each) for each in told), told


def a_forked_child(recorder):
    out, _ = recorder.run("forked_child")
    assert out == "the child ended with 0\n", out
    assert "child)" not in recorder.read("trace")


def short_lives(recorder):
    told = recorder.told("short_lives")
    assert 2 <= len(re.findall(r"^thread \d+: ", told, re.MULTILINE)) <= 12, told


def signals(recorder):
    told = recorder.told("signals")
    assert re.search(r" turns: spun at recorder_programs.cpp:\d+\n", told), told


def refusals(recorder):
    out, _ = recorder.run("refusals")
    assert re.fullmatch(r"options\.trace\.records must be a power of two from 1,024 to 16,777,216\n"
                        r"the trace \S+: open: .*\ndiary exists, and is not a trace\nit ran\n"
                        r"options\.trace\.file: this process records to trace\nsave_trace\(\): this process records to trace\n", out), out
    assert (recorder.where / "diary").read_text() == "Dear diary,\n"


def by_environment(recorder):
    out, notes = recorder.run("by_environment", MOTET_TRACE="of-%p")
    traces = list(recorder.where.glob("of-[0-9]*"))
    assert out == "it ran\n" and len(traces) == 1, (out, notes, traces)
    assert "by the environment" in recorder.read("--svg", "picture.svg", traces[0].name) + (
        recorder.where / "picture.svg").read_text()
    out, notes = recorder.run("by_environment", MOTET_TRACE="/nowhere/trace")
    assert out == "it ran\n" and "MOTET_TRACE has no effect: the trace /nowhere/trace: open: " in notes, (out, notes)
    out, notes = recorder.run("by_environment", MOTET_TRACE="of-%p-and-%p")
    twice = [path.name for path in recorder.where.glob("of-*-and-*")]
    assert len(twice) == 1 and re.fullmatch(r"of-(\d+)-and-\1", twice[0]), twice
    out, notes = recorder.run("by_environment")
    assert (out, notes) == ("it ran\n", ""), (out, notes)


def outputs(recorder):
    """The trace is not drawn over, and a report that cannot be written is an error."""
    recorder.run("hog")
    whole = (recorder.where / "trace").read_bytes()
    (recorder.where / "link").symlink_to("trace")
    for option in ("--svg", "--fxt"):
        for name in ("trace", "./trace", "link"):
            assert "is the trace itself" in recorder.read(option, name, "trace", status=64)
    assert (recorder.where / "trace").read_bytes() == whole
    with open("/dev/full", "w") as full:
        done = subprocess.run([recorder.reader, "trace"], cwd=recorder.where, stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    assert done.returncode == 1 and "standard output" in done.stderr, done


def names_that_are_no_text(recorder):
    """Half of a surrogate pair, a form longer than needed, markup, a line end."""
    recorder.run("renamed")
    trace = recorder.where / "trace"
    trace.write_bytes(trace.read_bytes().replace(b"GET /slow", b"\xed\xa0\x80\xe0\x80\x80<\n&"))
    told = section(recorder.read("trace"), "Longest turns, without a switchpoint")
    assert re.search(r"ms: fiber \d+ \(\?{6}<\?&, spun at", told), told
    recorder.read("--svg", "picture.svg", "trace")
    recorder.read("--fxt", "trace.fxt", "trace")
    xml.dom.minidom.parse(str(recorder.where / "picture.svg"))


def a_small_limit(recorder):
    """A limit of the size of files costs the trace, and not the program."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    done = subprocess.run([recorder.programs, "by_environment"], cwd=recorder.where, timeout=PATIENCE,
                          capture_output=True, text=True, preexec_fn=limit,
                          env={**os.environ, "MOTET_TRACE": "small"})
    assert (done.returncode, done.stdout) == (0, "it ran\n"), done
    assert "MOTET_TRACE has no effect: " in done.stderr, done


def a_truncated_file(recorder):
    """Somebody empties the file that is being recorded to."""
    out, _ = recorder.run("truncated")
    assert out == "it ran\n", out


def what_is_no_trace(recorder):
    recorder.run("hog")
    whole = (recorder.where / "trace").read_bytes()
    broken = {"empty": b"", "text": b"Dear diary,\n" * 1000, "cut": whole[:5000], "headless": b"x" + whole[1:],
              "ringless": whole[:4096 + 2**20 + 100]}
    for name, data in broken.items():
        (recorder.where / "broken").write_bytes(data)
        assert re.search("broken: (the trace is truncated|not a trace of motet)", recorder.read("broken", status=1)), name
    # Any word of the head may be wrong; the reader says so, or reads what is there.
    for at in range(8, 96, 8):
        for value in (0, 1, 2**63, 2**64 - 1):
            (recorder.where / "broken").write_bytes(whole[:at] + struct.pack("<Q", value) + whole[at + 8:])
            done = subprocess.run([recorder.reader, "broken"], cwd=recorder.where, capture_output=True, timeout=PATIENCE)
            assert done.returncode in (0, 1), (at, value, done)
    # So may any record.
    dice = random.Random(1)
    records_at = 4096 + 2**20 + 4096
    for _ in range(20):
        noise = dice.randbytes(16 * 200)
        (recorder.where / "broken").write_bytes(whole[:records_at] + noise + whole[records_at + len(noise):])
        for arguments in (["broken"], ["--svg", "out", "broken"], ["--fxt", "out", "broken"]):
            recorder.read(*arguments)
    recorder.read("no such file", status=1)
    recorder.read(status=64)
    recorder.read("--from", "x", "trace", status=64)


def many_records(recorder, timed):
    recorder.run("many_records")
    started = time.monotonic()
    told = recorder.read("trace")
    took = time.monotonic() - started
    records = int(re.search(r": ([\d,]+) records", told)[1].replace(",", ""))
    assert records >= 1_000_000, told
    print(f"{records} records read in {took:.2f} s")
    # Ten million take 0.8 s on a quiet machine.
    assert not timed or took < max(1.0, records / 5e6), took


TESTS = [a_fiber_behind_another, a_late_timer, a_blocking_call, a_name_for_each_request, a_lock_that_was_free,
         a_traveller, a_convoy, a_killed_process, a_deadlock,
         a_ring_that_goes_round, cancellations, messages_of_two_threads, snapshots, copies_of_what_goes_on,
         a_forked_child, short_lives, signals, refusals, by_environment, outputs, names_that_are_no_text, a_small_limit, a_truncated_file, what_is_no_trace]
# Simulated time does not pass while a fiber computes.
IN_REAL_TIME = {a_late_timer, a_convoy, a_lock_that_was_free, a_traveller, a_killed_process}


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    programs, reader = (os.path.abspath(path) for path in sys.argv[1:3])
    simulated = os.environ.get("MOTET_BACKEND") == "sim"
    for test in TESTS:
        if simulated and test in IN_REAL_TIME:
            continue
        with tempfile.TemporaryDirectory() as where:
            test(Recorder(programs, reader, where))
        print(f"ok: {test.__name__}", flush=True)
    with tempfile.TemporaryDirectory() as where:
        many_records(Recorder(programs, reader, where), timed=sys.argv[3:] == ["--timed"])


if __name__ == "__main__":
    main()
