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

    def __init__(self, programs, reader, directory):
        self.programs, self.reader, self.where = programs, reader, pathlib.Path(directory)

    def run(self, name, status=0, **environment):
        result = subprocess.run([self.programs, name], capture_output=True, text=True, timeout=PATIENCE,
                                cwd=self.where, env={**os.environ, **environment})
        assert result.returncode == status, f"{name} ended with {result.returncode}: {result.stderr}"
        return result.stdout, result.stderr

    def read(self, *arguments, status=0):
        result = subprocess.run([self.reader, *arguments], capture_output=True, text=True,
                                timeout=PATIENCE, cwd=self.where)
        assert result.returncode == status, f"{arguments}: {result.returncode}, {result.stderr}"
        return result.stdout if status == 0 else result.stderr

    def told(self, name, status=0, **environment):
        self.run(name, status, **environment)
        return self.read("trace")


def section(text, title):
    """The lines under a title."""
    match = re.search(rf"^{re.escape(title)}:\n((?:  .*\n)+)", text, re.MULTILINE)
    assert match, (title, text)
    return match[1]


def a_fiber_behind_another(recorder):
    late = section(recorder.told("hog"), "Late")
    match = re.search(r"fiber \d+ \(GET /x, spun at recorder_programs.cpp:\d+\) was late by (\d+)\.\d ms: runnable "
                      r"behind parse_job \(recorder_programs.cpp:\d+\), which ran (\d+)\.\d ms without a switchpoint", late)
    assert match and int(match[1]) >= 39 and int(match[2]) >= 39, late


def a_late_timer(recorder):
    output = recorder.told("late_timer")
    late = section(output, "Late")
    match = re.search(r"\(sleeper, spun at \S+\) was late by (\d+)\.\d ms: its sleep, or its limit, was over, and it "
                      r"stood behind parse_job \(\S+\), which ran \d+\.\d ms without a switchpoint", late)
    assert match and 25 <= int(match[1]), late
    longest = re.search(r"(\d+)\.\d ms: fiber \d+ \(parse_job, ",
                        section(output, "Longest turns, without a switchpoint"))
    assert longest and int(longest[1]) >= 39, output


def a_blocking_call(recorder):
    late = section(recorder.told("blocking_read"), "Late")
    assert re.search(r"\(GET /x, .*runnable behind reader \(\S+\), which ran \d+\.\d ms without", late), late


def a_name_for_each_request(recorder):
    longest = section(recorder.told("renamed"), "Longest turns, without a switchpoint")
    assert re.search(r"\d\d\.\d ms: fiber \d+ \(GET /slow, spun at", longest), longest


def a_lock_that_was_free(recorder):
    waited = section(recorder.told("lock_now_and_then"), "Waited for")
    match = re.search(r"lock of a mutex .*: 2 waits, .*; longest kept by .*\(customer, .*\), for (\d+)\.\d ms", waited)
    assert match and int(match[1]) < 150, waited


def a_traveller(recorder):
    output = recorder.told("traveller")
    longest = section(output, "Longest turns, without a switchpoint")
    match = re.search(r"\d\d\.\d ms: fiber \d+ \(traveller, spun at \S+\), on thread (\d+),", longest)
    main_thread = re.match(r"process (\d+)", output)[1]
    assert match and match[1] != main_thread, output


def a_convoy(recorder):
    waited = section(recorder.told("convoy"), "Waited for")
    match = re.search(r"lock of a mutex 0x[0-9a-f]+: 8 waits, (\d+)\.\d ms in all, (\d+)\.\d ms at the most; longest "
                      r"kept by fiber \d+ \(keeper, spun at \S+\), for (\d+)\.\d ms", waited)
    assert match and int(match[1]) >= 8 * 39 and int(match[2]) >= 39 and int(match[3]) >= 39, waited


def a_killed_process(recorder):
    waits = section(recorder.told("killed_with_a_leak", KILLED), "Waiting at the end")
    match = re.search(r"fiber \d+ \(leaked, spun at \S+\): suspend, for (\d+)\.\d ms", waits)
    assert match and int(match[1]) >= 25, waits


def a_deadlock(recorder):
    waits = section(recorder.told("deadlock_of_three", KILLED), "Waiting at the end")
    for i in range(3):
        assert re.search(rf"\(philosopher {i}, .*\): lock of a mutex", waits), waits


def an_awaited_fiber_among_many(recorder):
    longest = section(recorder.told("awaited_among_many"), "Longest turns, without a switchpoint")
    match = re.search(r"(\d+)\.\d ms: fiber \d+ \(awaited, spun at", longest)
    assert match and int(match[1]) >= 199, longest
    # A busy machine may interrupt a bystander for some ten milliseconds, but not for as long as the awaited fiber ran.
    bystanders = re.findall(r"(\d+)\.\d ms: fiber \d+ \(bystander", longest)
    assert all(int(turn) < 199 for turn in bystanders), longest


def a_ring_that_goes_round(recorder):
    output = recorder.told("long_life")
    assert "what was before is lost" in output, output
    # Nobody has lost his name, though it was told long ago.
    assert re.search(r"spun at recorder_programs.cpp:\d+", section(output, "Time of fibers")), output
    assert "nothing is known" not in output, output
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
        index = 1
        while index < len(self.words):
            size = self.words[index] >> 4 & 0xfff
            assert size > 0 and index + size <= len(self.words), (index, size)
            self.take(index, size)
            index += size

    def take(self, index, size):
        header = self.words[index]
        kind = header & 15
        if kind == 2:
            length = header >> 32 & 0x7fff
            assert size == 1 + (length + 7) // 8
            self.strings[header >> 16 & 0x7fff] = self.data[8 * index + 8:8 * index + 8 + length].decode()
        elif kind == 3:
            self.threads[header >> 16 & 0xff] = self.words[index + 2]
        elif kind == 4:
            self.take_event(index, size, header)
        elif kind == 7 and header >> 16 & 0xff == 2:
            self.names[self.words[index + 1]] = self.strings[header >> 24 & 0xffff]
        else:
            assert kind in (0, 1, 7), kind

    def take_event(self, index, size, header):
        event, thread, timestamp = header >> 16 & 15, self.threads[header >> 24 & 0xff], self.words[index + 1]
        name = self.strings[header >> 48]
        last = self.words[index + size - 1]
        if event == 4:
            assert last >= timestamp
            self.turns.append((thread, timestamp, last, name))
        elif event == 8:
            self.begins[last] = (thread, timestamp)
        else:
            assert event == 10, event
            self.ends[last] = (thread, timestamp)


def messages_of_two_threads(recorder):
    output = recorder.told("messages")
    assert re.search(r"by other threads [1-9]", output), output
    recorder.read("--fxt", "out.fxt", "trace")
    fxt = Fxt((recorder.where / "out.fxt").read_bytes())
    threads = set(fxt.names)
    assert len(threads) == 2 and all(name.startswith("thread ") for name in fxt.names.values()), fxt.names
    assert fxt.begins.keys() == fxt.ends.keys()
    keys = [key for key in fxt.begins if fxt.begins[key][0] != fxt.ends[key][0]]
    assert len(keys) >= 10, fxt.begins
    # An arrow leads from within a turn to the beginning of a turn.
    for key in keys:
        thread, timestamp = fxt.begins[key]
        assert any(number == thread and begin <= timestamp <= end for number, begin, end, _ in fxt.turns), key
        thread, timestamp = fxt.ends[key]
        assert any(number == thread and begin <= timestamp <= end for number, begin, end, _ in fxt.turns), key
        assert fxt.begins[key][1] <= fxt.ends[key][1], key


def snapshots(recorder):
    for program, cause in (("missed_deadline", "deadline"), ("failure", "failure"), ("stall", "stall"),
                           ("dump_signal", "signal")):
        recorder.run(program)
        recorder.read("trace")
        assert re.match(r"process \d+: [\d,]+ records? of 1 thread\n", recorder.read(f"trace.{cause}-1")), cause


def copies_of_what_goes_on(recorder):
    output, _ = recorder.run("saved_while_busy")
    assert output == "saved\n", output
    # The thread may have gone round its ring while it was copied; then little is left, or nothing.
    copies = [recorder.read(f"copy-{i}") for i in range(10)]
    assert all(re.match(r"process \d+: [\d,]+ records? of 1 thread\n", text) for text in copies), copies
    assert any(re.search(r" turns: spun at recorder_programs.cpp:\d+\n", text) for text in copies), copies


def a_forked_child(recorder):
    output, _ = recorder.run("forked_child")
    assert output == "the child ended with 0\n", output
    assert "child)" not in recorder.read("trace")


def short_lives(recorder):
    output = recorder.told("short_lives")
    assert 2 <= len(re.findall(r"^thread \d+: ", output, re.MULTILINE)) <= 12, output


def signals(recorder):
    output = recorder.told("signals")
    assert re.search(r" turns: spun at recorder_programs.cpp:\d+\n", output), output


def refusals(recorder):
    output, _ = recorder.run("refusals")
    assert re.fullmatch(r"options\.trace\.records must be a power of two from 1,024 to 16,777,216\n"
                        r"the trace \S+: open: .*\ndiary exists, and is not a trace\nit ran\n"
                        r"options\.trace\.file: this process records to trace\nsave_trace\(\): this process records to trace\n", output), output
    assert (recorder.where / "diary").read_text() == "Dear diary,\n"


def by_environment(recorder):
    output, notes = recorder.run("by_environment", MOTET_TRACE="of-%p")
    traces = list(recorder.where.glob("of-[0-9]*"))
    assert output == "it ran\n" and len(traces) == 1, (output, notes, traces)
    assert "by the environment" in recorder.read("--svg", "picture.svg", traces[0].name) + (
        recorder.where / "picture.svg").read_text()
    output, notes = recorder.run("by_environment", MOTET_TRACE="/nowhere/trace")
    assert output == "it ran\n", output
    assert "MOTET_TRACE has no effect: the trace /nowhere/trace: open: " in notes, notes
    output, notes = recorder.run("by_environment", MOTET_TRACE="of-%p-and-%p")
    twice = [path.name for path in recorder.where.glob("of-*-and-*")]
    assert len(twice) == 1 and re.fullmatch(r"of-(\d+)-and-\1", twice[0]), twice
    output, notes = recorder.run("by_environment")
    assert (output, notes) == ("it ran\n", ""), (output, notes)


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
        result = subprocess.run([recorder.reader, "trace"], cwd=recorder.where, stdout=full,
                                stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    assert result.returncode == 1 and "standard output" in result.stderr, result


def names_that_are_no_text(recorder):
    """Half of a surrogate pair, a form longer than needed, markup, a line end."""
    recorder.run("renamed")
    trace = recorder.where / "trace"
    trace.write_bytes(trace.read_bytes().replace(b"GET /slow", b"\xed\xa0\x80\xe0\x80\x80<\n&"))
    output = section(recorder.read("trace"), "Longest turns, without a switchpoint")
    assert re.search(r"ms: fiber \d+ \(\?{6}<\?&, spun at", output), output
    recorder.read("--svg", "picture.svg", "trace")
    recorder.read("--fxt", "trace.fxt", "trace")
    xml.dom.minidom.parse(str(recorder.where / "picture.svg"))


def a_small_limit(recorder):
    """A limit of the size of files costs the trace, and not the program."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    result = subprocess.run([recorder.programs, "by_environment"], cwd=recorder.where, timeout=PATIENCE,
                            capture_output=True, text=True, preexec_fn=limit,
                            env={**os.environ, "MOTET_TRACE": "small"})
    assert (result.returncode, result.stdout) == (0, "it ran\n"), result
    assert "MOTET_TRACE has no effect: " in result.stderr, result


def a_truncated_file(recorder):
    """Somebody empties the file that is being recorded to."""
    output, _ = recorder.run("truncated")
    assert output == "it ran\n", output


def what_is_no_trace(recorder):
    recorder.run("hog")
    whole = (recorder.where / "trace").read_bytes()
    files = {"empty": b"", "text": b"Dear diary,\n" * 1000, "cut": whole[:5000], "headless": b"x" + whole[1:],
             "ringless": whole[:4096 + 2**20 + 100]}
    for name, data in files.items():
        (recorder.where / "broken").write_bytes(data)
        assert re.search("broken: (the trace is truncated|not a trace of motet)", recorder.read("broken", status=1)), name
    # Any word of the head may be wrong; the reader says so, or reads what is there.
    for index in range(8, 96, 8):
        for value in (0, 1, 2**63, 2**64 - 1):
            (recorder.where / "broken").write_bytes(whole[:index] + struct.pack("<Q", value) + whole[index + 8:])
            result = subprocess.run([recorder.reader, "broken"], cwd=recorder.where, capture_output=True, timeout=PATIENCE)
            assert result.returncode in (0, 1), (index, value, result)
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
    start = time.monotonic()
    output = recorder.read("trace")
    duration = time.monotonic() - start
    records = int(re.search(r": ([\d,]+) records", output)[1].replace(",", ""))
    assert records >= 1_000_000, output
    print(f"{records} records read in {duration:.2f} s")
    # Ten million take 0.8 s on a quiet machine.
    assert not timed or duration < max(1.0, records / 5e6), duration


TESTS = [a_fiber_behind_another, a_late_timer, a_blocking_call, a_name_for_each_request, a_lock_that_was_free,
         a_traveller, a_convoy, a_killed_process, a_deadlock, a_ring_that_goes_round, an_awaited_fiber_among_many,
         cancellations, messages_of_two_threads, snapshots, copies_of_what_goes_on, a_forked_child, short_lives,
         signals, refusals, by_environment, outputs, names_that_are_no_text, a_small_limit, a_truncated_file,
         what_is_no_trace]
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
        with tempfile.TemporaryDirectory() as directory:
            test(Recorder(programs, reader, directory))
        print(f"ok: {test.__name__}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        many_records(Recorder(programs, reader, directory), timed=sys.argv[3:] == ["--timed"])


if __name__ == "__main__":
    main()
