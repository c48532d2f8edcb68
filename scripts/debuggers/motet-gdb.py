# SPDX-License-Identifier: MIT
"""gdb commands for programs that use motet, alive or in a core file:

  fibers                   all fibers: number, name, state, what they wait for, where they were spun
  fiber N COMMAND          a gdb command in the frames of fiber N, as: fiber 7 bt
  fiber apply all COMMAND  the same for each of them

gdb finds this file by itself beside an installed libmotet; otherwise: source motet-gdb.py. It needs
no debugging information, without which frames have names, but neither lines nor variables. A core
file should be the kernel's: gdb's generate-core-file leaves out stacks unless the process runs with
MOTET_DISABLE=guard.
"""

import contextlib
import os
import re
import sys

import gdb
import gdb.unwinder

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import motet_fibers  # noqa: E402


class Memory:
    """Of the process or core file that gdb looks at."""

    def bytes(self, address, size):
        try:
            return bytes(gdb.selected_inferior().read_memory(address, size))
        except gdb.error as problem:
            raise motet_fibers.Unreadable(str(problem)) from None

    def text(self, address):
        return gdb.Value(address).cast(gdb.lookup_type("char").pointer()).string(errors="replace") if address else ""

    def symbol(self, address):
        return gdb.execute(f"info symbol {address}", to_string=True)


def copies_of_motet():
    symbols = gdb.execute(f"info variables -q {motet_fibers.PAGE}$", to_string=True)
    names = set(re.findall(rf"(motet::\w+::detail::{motet_fibers.PAGE})\b", symbols))
    if not names:
        raise gdb.GdbError("this program does not use motet")
    for name in sorted(names):
        yield motet_fibers.Motet(Memory(), int(gdb.parse_and_eval(f"(unsigned long)&'{name}'")))


def all_fibers():
    try:
        for motet in copies_of_motet():
            yield from motet.fibers()
    except motet_fibers.Unreadable as problem:
        raise gdb.GdbError(str(problem)) from None


class Disguise(gdb.unwinder.Unwinder):
    """Makes a fiber's newest frame the caller of the selected thread's: in a core file registers
    cannot be set."""

    def __init__(self):
        super().__init__("motet fiber")
        self.registers = None
        self.enabled = True

    def __call__(self, frame):
        if self.registers is None or frame.read_register("rsp") != self.own_stack:
            return None

        class Identity:
            sp = gdb.Value(self.registers["rsp"] - 16)  # below all that follow
            pc = frame.read_register("rip")

        unwind_info = frame.create_unwind_info(Identity())
        for name, value in self.registers.items():
            unwind_info.add_saved_register(name, gdb.Value(value).cast(self.word))
        return unwind_info

    @contextlib.contextmanager
    def as_fiber(self, registers):
        self.word = gdb.lookup_type("unsigned long")
        self.own_stack = gdb.newest_frame().read_register("rsp")
        self.registers = registers
        gdb.invalidate_cached_frames()
        try:
            yield
        finally:
            self.registers = None
            gdb.invalidate_cached_frames()


disguise = Disguise()
gdb.unwinder.register_unwinder(None, disguise, replace=True)


@contextlib.contextmanager
def on_thread(number):
    """Selects the thread with this number in the kernel, for a while."""
    previous_thread = gdb.selected_thread()
    home = [thread for thread in gdb.selected_inferior().threads() if thread.ptid[1] == number]
    if not home:
        raise gdb.GdbError(f"thread {number} is not there")
    home[0].switch()
    gdb.newest_frame().select()
    try:
        yield
    finally:
        if previous_thread is not None and previous_thread.is_valid():
            previous_thread.switch()


def execute(command):
    """Leaves out the thread's own frame, which stands before the fiber's."""
    if command.split()[0] in ("bt", "backtrace", "where"):
        text = gdb.execute(command, to_string=True)
        end = text.find("\n#1 ")
        gdb.write(text[end + 1:] if end >= 0 else text)
        return
    gdb.newest_frame().older().select()
    gdb.execute(command)


def execute_in(fiber, command):
    with on_thread(fiber.thread):
        if fiber.runs:
            gdb.execute(command)
        elif not fiber.has_run():
            gdb.write("it has not run yet\n")
        else:
            with disguise.as_fiber(fiber.registers()):
                execute(command)


class FibersCommand(gdb.Command):
    """Lists all fibers: number, name, state, what they wait for, where they were spun.
A star marks those whose registers are their thread's."""

    def __init__(self):
        super().__init__("fibers", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        thread = None
        for fiber in all_fibers():
            if fiber.thread != thread:
                thread = fiber.thread
                gdb.write(f"thread {thread}:\n")
            mark = "*" if fiber.runs else " "
            gdb.write(f"{mark} {fiber.label()} {fiber.state()}{fiber.wait()}{fiber.site()}\n")


class FiberCommand(gdb.Command):
    """fiber N COMMAND: runs a gdb command in the frames of fiber N.
fiber apply all COMMAND: runs it in those of each fiber."""

    def __init__(self):
        super().__init__("fiber", gdb.COMMAND_STACK, gdb.COMPLETE_COMMAND)

    def invoke(self, argument, from_tty):
        every = re.fullmatch(r"\s*apply\s+all\s+(\S.*)", argument)
        match = re.fullmatch(r"\s*(\d+)\s+(\S.*)", argument)
        if every:
            for fiber in list(all_fibers()):
                gdb.write(f"\n{fiber.label()} {fiber.state()}{fiber.wait()}\n")
                execute_in(fiber, every[1])
        elif match:
            fibers = [fiber for fiber in all_fibers() if fiber.number == int(match[1])]
            if not fibers:
                raise gdb.GdbError(f"there is no fiber {match[1]}: fibers lists those that there are")
            execute_in(fibers[0], match[2])
        else:
            raise gdb.GdbError("usage: fiber N COMMAND, or fiber apply all COMMAND")


FibersCommand()
FiberCommand()
