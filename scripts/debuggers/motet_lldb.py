# SPDX-License-Identifier: MIT
"""lldb shows the parked fibers of a program with motet as threads, alive or in a core file:

  command script import motet_lldb.py      when the process, or the core file, is there
  fibers                   lists all: name, what they wait for, where they were spun, and their threads
  thread select N, bt      the frames of one; so do up, frame variable and the rest

It needs no debugging information, without which frames have names, but neither lines nor variables.
For x86-64.
"""

import os
import shlex
import struct
import sys

import lldb

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import motet_fibers  # noqa: E402

MOST_BYTES = 300  # of a text
FIRST_TID = 1 << 62  # no thread of the kernel has such a number


class Memory:
    """Of the process or core file that lldb looks at."""

    def __init__(self, process):
        self.process = process

    def bytes(self, address, size):
        error = lldb.SBError()
        data = self.process.ReadMemory(address, size, error)
        if not error.Success():  # a core file need not have what is in the program's file
            place = self.process.GetTarget().ResolveLoadAddress(address)
            error.Clear()
            data = place.GetSection().GetSectionData(place.GetOffset(), size).ReadRawData(error, 0, size)
        if not error.Success() or data is None or len(data) != size:
            raise motet_fibers.Unreadable(f"there is no memory at {address:#x}")
        return data

    def text(self, address):
        """A byte at a time: what is behind it need not be there."""
        text = b""
        while address and len(text) < MOST_BYTES and (byte := self.bytes(address + len(text), 1)) != b"\0":
            text += byte
        return text.decode(errors="replace")

    def symbol(self, address):
        return self.process.GetTarget().ResolveLoadAddress(address).GetSymbol().GetName() or ""


def copies_of_motet(process):
    target = process.GetTarget()
    for module in target.module_iter():
        for symbol in module:
            if symbol.GetType() == lldb.eSymbolTypeData and (symbol.GetName() or "").endswith(f"::{motet_fibers.PAGE}"):
                yield motet_fibers.Motet(Memory(process), symbol.GetStartAddress().GetLoadAddress(target))
                break


# Name, number in DWARF, and what lldb calls it.
REGISTERS = [("rax", 0, None), ("rdx", 1, None), ("rcx", 2, None), ("rbx", 3, None), ("rsi", 4, None),
             ("rdi", 5, None), ("rbp", 6, "fp"), ("rsp", 7, "sp"), ("r8", 8, None), ("r9", 9, None),
             ("r10", 10, None), ("r11", 11, None), ("r12", 12, None), ("r13", 13, None), ("r14", 14, None),
             ("r15", 15, None), ("rip", 16, "pc")]


def register_info(index, name, dwarf, generic):
    info = {"name": name, "bitsize": 64, "offset": 8 * index, "encoding": "uint", "format": "hex", "set": 0,
            "dwarf": dwarf, "gcc": dwarf}
    return info | ({"generic": generic} if generic else {})


class OperatingSystemPlugIn:
    """What lldb asks for at each stop."""

    def __init__(self, process):
        self.process, self.fibers, self.looks = process, {}, False

    def parked(self):
        for motet in copies_of_motet(self.process):
            yield from (fiber for fiber in motet.fibers() if not fiber.runs and fiber.has_run())

    def look(self):
        """What is read of the process may make lldb ask for its threads once more."""
        if self.looks:
            return
        self.looks = True
        try:
            self.fibers = {FIRST_TID | fiber.number: fiber for fiber in self.parked()}
        except motet_fibers.Unreadable as problem:
            print(f"motet_lldb.py: {problem}")
            self.fibers = {}
        finally:
            self.looks = False

    def get_thread_info(self):
        self.look()
        return [{"tid": tid, "name": f"{fiber.label()} {fiber.state()}{fiber.wait()}{fiber.site()}", "queue": "fibers",
                 "state": "stopped", "stop_reason": "none"} for tid, fiber in self.fibers.items()]

    def get_register_info(self):
        return {"sets": ["registers"],
                "registers": [register_info(i, *register) for i, register in enumerate(REGISTERS)]}

    def get_register_data(self, tid):
        if tid not in self.fibers:
            return None
        registers = self.fibers[tid].registers()
        return struct.pack(f"<{len(REGISTERS)}Q", *(registers.get(name, 0) for name, _, _ in REGISTERS))


def fibers(debugger, command, result, internal):
    """Lists all fibers, and the threads that lldb shows for those that are parked. A star marks those
    whose registers are their thread's."""
    process = debugger.GetSelectedTarget().GetProcess()
    if not process.IsValid():
        result.SetError("there is no process")
        return
    threads = {thread.GetThreadID(): thread.GetIndexID() for thread in process}
    for motet in copies_of_motet(process):
        for fiber in motet.fibers():
            number = threads.get(FIRST_TID | fiber.number)
            place = f", thread #{number}" if number else ""
            mark = "*" if fiber.runs else " "
            result.AppendMessage(f"{mark} {fiber.label()} {fiber.state()}{fiber.wait()}{fiber.site()}{place}")


def __lldb_init_module(debugger, names):
    debugger.HandleCommand(f"settings set target.process.python-os-plugin-path {shlex.quote(__file__)}")
    debugger.HandleCommand(f"command script add --overwrite --function {__name__}.fibers fibers")
