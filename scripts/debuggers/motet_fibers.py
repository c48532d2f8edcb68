# SPDX-License-Identifier: MIT
"""The fibers of a process, or of its core file, as motet-gdb.py and motet_lldb.py show them. Nothing runs
in the process, and no debugging information is needed: a page of numbers in the library says where
everything is (runtime/observe/debugger_page.cpp, which has the same order)."""

import struct

# A library has one for each copy of it: motet::abi_0::detail::motet_debugger_page.
PAGE = "motet_debugger_page"
MOST_FIELDS = 64
FIELDS = ("roster", "entry.thread", "entry.runtime", "entry.next", "thread.running", "thread.fibers", "block.size",
          "block.links", "id", "state", "wait", "named", "site.file", "site.line", "stack_pointer", "resume_at", "frame",
          "base", "wait.description", "wait.subject", "wait.target", "wait.kind", "slab.size", "slab.first",
          "slab.blocks", "slab.cold_size", "cold.name")
STATES = ("runnable", "running", "waiting", "dead")
OBJECT, LOCK = 1, 2  # kinds of waits: runtime/include/motet/detail/core/wait_record.hpp
NUMBER_BITS = 40  # of a fiber within its thread


class Unreadable(Exception):
    """What was looked for is not there."""


class Motet:
    """One copy of motet in a process. `memory` reads: bytes(at, size) and text(at), which may raise
    Unreadable, and symbol(at), a name or ""."""

    def __init__(self, memory, page):
        self.memory, self.texts = memory, {}
        count = self.word(page)
        if count == 0:
            self.at = {}  # no runtime has begun
            return
        if count != len(FIELDS):
            raise Unreadable("these scripts are not of the same version as the motet of the program")
        words = struct.unpack(f"<{count}Q", memory.bytes(page + 8, 8 * count))
        self.at = dict(zip(FIELDS, words))

    def word(self, address):
        return struct.unpack("<Q", self.memory.bytes(address, 8))[0]

    def text(self, address):
        """A literal, of which many fibers have the same."""
        if address not in self.texts:
            self.texts[address] = self.memory.text(address)
        return self.texts[address]

    def threads(self):
        """The kernel's number and the runtime of each thread."""
        place = self.word(self.at["roster"]) if self.at else 0
        while place:
            number = struct.unpack("<i", self.memory.bytes(place + self.at["entry.thread"], 4))[0]
            runtime = self.word(place + self.at["entry.runtime"])
            if number and runtime:
                yield number, runtime
            place = self.word(place + self.at["entry.next"])

    def fibers(self):
        for thread, runtime in self.threads():
            running_block = self.word(runtime + self.at["thread.running"])
            ends = runtime + self.at["thread.fibers"]
            link = self.word(ends + 8)  # a link is the one before and the one after
            while link != ends:
                fiber = Fiber(self, link - self.at["block.links"], thread)
                fiber.runs = fiber.at == running_block
                yield fiber
                link = self.word(link + 8)

    def name_of(self, block):
        if not self.at["cold.name"]:
            return ""
        base = block & ~(self.at["slab.size"] - 1)
        index = (block - base - self.at["slab.first"]) // self.at["block.size"]
        part = (base + self.at["slab.first"] + self.at["block.size"] * self.at["slab.blocks"] +
                index * self.at["slab.cold_size"])
        text, length = struct.unpack("<2Q", self.memory.bytes(part + self.at["cold.name"], 16))
        return self.memory.bytes(text, min(length, 1000)).decode(errors="replace")


class Fiber:
    """As it was when its block was read. `runs`: its registers are its thread's, also when it waits, but
    polls itself."""

    def __init__(self, motet, address, thread=0):
        self.motet, self.at, self.thread, self.runs = motet, address, thread, False
        self.block = motet.memory.bytes(address, motet.at["block.size"])
        self.number = self.word("id")

    def word(self, field):
        return struct.unpack_from("<Q", self.block, self.motet.at[field])[0]

    def name(self):
        return self.motet.name_of(self.at) if self.block[self.motet.at["named"]] else ""

    def label(self):
        name = self.name()
        return f"fiber {self.number}" + (f' "{name}"' if name else "")

    def state(self):
        number = self.block[self.motet.at["state"]]
        return STATES[number] if number < len(STATES) else "?"

    def wait(self):
        offsets, wait = self.motet.at, self.word("wait")
        if self.state() != "waiting" or not wait:
            return ""
        memory = self.motet.memory
        text = ": " + self.motet.text(self.motet.word(wait + offsets["wait.description"]))
        subject = struct.unpack("<q", memory.bytes(wait + offsets["wait.subject"], 8))[0]
        kind = memory.bytes(wait + offsets["wait.kind"], 1)[0]
        if kind in (OBJECT, LOCK):
            text += f" {subject & (2**64 - 1):#x}"
        elif subject >= 0:
            text += f" {subject}"
        target = self.motet.word(wait + offsets["wait.target"])
        if not target:
            return text
        if kind == LOCK:
            return text + self.holder(target)
        target_fiber = Fiber(self.motet, self.motet.word(target))
        return text + (", held up by " if subject >= 0 else " ") + target_fiber.label()

    def holder(self, place):
        """A lock's: the number of a fiber, doubled, or the odd mark of a thread; no lock may be there now."""
        try:
            mark = self.motet.word(place)
        except Unreadable:
            return ""
        if mark == 0:
            return ""
        return ", held by " + ("a main fiber" if mark & 1 else f"fiber {mark >> 1}")

    def site(self):
        if self.number & ((1 << NUMBER_BITS) - 1) == 1:
            return ", a main fiber"
        line = struct.unpack_from("<I", self.block, self.motet.at["site.line"])[0]
        return f"; spun at {self.motet.text(self.word('site.file'))}:{line}"

    def registers(self):
        """What it goes on with, on x86-64: see context/x86_64.hpp and context/x86_64.cpp. Not while it runs."""
        stack = self.word("stack_pointer")
        if self.word("resume_at"):
            return {"rip": self.word("resume_at"), "rsp": stack, "rbp": self.word("frame"), "rbx": self.word("base")}
        saved = struct.unpack("<7Q", self.motet.memory.bytes(stack, 56))
        return dict(zip(("r15", "r14", "r13", "r12", "rbx", "rbp", "rip"), saved)) | {"rsp": stack + 56}

    def has_run(self):
        """A fresh one stands before the first instruction of its life."""
        if self.runs:
            return True
        if not self.word("stack_pointer"):
            return False
        return "motet_enter_context" not in self.motet.memory.symbol(self.registers()["rip"])
