# SPDX-License-Identifier: MIT
"""gdb commands for programs that use motet, alive or in a core file:

  fibers                   all fibers: number, name, state, what they wait for, where they were spun
  fiber N COMMAND          a gdb command in the frames of fiber N, as: fiber 7 bt
  fiber apply all COMMAND  the same for each of them

gdb finds this file by itself beside an installed libmotet; otherwise: source motet-gdb.py. It needs
motet's debugging information (meson setup -Ddebug=true, or a package of it). A core file should be
the kernel's: gdb's generate-core-file leaves out stacks unless the process runs with
MOTET_DISABLE=guard.
"""

import contextlib
import re

import gdb
import gdb.unwinder

# ---- What motet looks like in memory; a change there needs one here and nowhere else. ----

NO_INFORMATION = "motet's debugging information is missing: build it with -Ddebug=true"


def content(atomic):
    """The value in a std::atomic."""
    kind = atomic.type.strip_typedefs().template_argument(0)
    return atomic.address.cast(kind.pointer()).dereference()


def holder(place):
    """A lock's: the number of a fiber, doubled, or the odd mark of a thread; no lock may be there now."""
    try:
        mark = int(content(place.dereference()))
    except gdb.error:
        return ""
    if mark == 0:
        return ""
    return ", held by " + ("a main fiber" if mark & 1 else f"fiber {mark >> 1}")


def rosters():
    """The variables in which the process's runtimes are listed, one for each copy of motet."""
    found = gdb.execute("info variables -q motet_roster$", to_string=True)
    names = set(re.findall(r"(motet::\w+::detail::motet_roster)\b", found))
    if not names:
        raise gdb.GdbError("this program does not use motet, or " + NO_INFORMATION)
    for name in sorted(names):
        try:
            yield name.rpartition("::")[0], gdb.parse_and_eval(f"'{name}'")
        except gdb.error as problem:
            raise gdb.GdbError(f"{NO_INFORMATION} ({problem})") from None


def runtimes():
    """The thread_state of each thread, with the kernel's number of it and motet's namespace."""
    for namespace, roster in rosters():
        try:
            place = content(roster)
        except (RuntimeError, gdb.error):
            raise gdb.GdbError(NO_INFORMATION) from None
        while place:
            number, runtime = int(content(place["thread"])), content(place["runtime"])
            if number and runtime:
                yield namespace, number, runtime.dereference()
            place = place["next"]


def base_offset(derived, tag):
    """Where in a `derived` the link is by which it is in the lists of `tag`."""
    for field in derived.fields():
        if field.is_base_class and field.name.endswith(f"{tag}>"):
            return field.bitpos // 8
    raise gdb.GdbError(NO_INFORMATION)


def fibers_of(namespace, thread, runtime):
    block = gdb.lookup_type(f"{namespace}::control_block")
    offset = base_offset(block, "fibers_tag")
    ends = runtime["fibers_"]["ends_"]
    link = ends["after"]
    while link != ends.address:
        at = int(link) - offset
        yield Fiber(namespace, thread, runtime, gdb.Value(at).cast(block.pointer()).dereference())
        link = link["after"]


def cold_part(namespace, block):
    """Stands beside the blocks of a slab: see cold_part.hpp."""
    slab = gdb.parse_and_eval(f"'{namespace}::motet_slab_layout'")
    kind = gdb.lookup_type(f"{namespace}::cold_part")
    at = int(block.address)
    base = at & ~(int(slab["size"]) - 1)
    first, size = int(slab["first"]), block.type.sizeof
    index = (at - base - first) // size
    part = base + first + size * int(slab["blocks"]) + index * int(slab["cold_room"])
    return gdb.Value(part).cast(kind.pointer()).dereference()


class Fiber:
    def __init__(self, namespace, thread, runtime, block):
        self.namespace, self.thread, self.runtime, self.block = namespace, thread, runtime, block
        self.number = int(block["id"])

    def name(self):
        if not self.block["named"]:
            return ""
        text = cold_part(self.namespace, self.block)["name"]
        return text["_M_dataplus"]["_M_p"].string(length=int(text["_M_string_length"]))

    def label(self):
        return f"fiber {self.number}" + (f' "{self.name()}"' if self.name() else "")

    def runs(self):
        """Whether its registers are those of its thread: also when it waits, but polls itself."""
        return self.runtime["running_"] == self.block.address

    def state(self):
        return str(content(self.block["state"])).rpartition("::")[2]

    def wait(self):
        wait = self.block["wait"]
        if self.state() != "waiting" or not wait:
            return ""
        text = ": " + wait["what"].string()
        subject = int(wait["subject"])
        if wait["of_object"]:
            text += f" {subject:#x}"
        elif subject >= 0:
            text += f" {subject}"
        if wait["for_lock"]:
            return text + holder(wait["holder"])
        if wait["target"]:
            awaited = Fiber(self.namespace, 0, self.runtime, wait["target"].dereference().dereference())
            text += (", held up by " if subject >= 0 else " ") + awaited.label()
        return text

    def site(self):
        if self.block["is_main"]:
            return ", a main fiber"
        site = self.block["site"]
        return f"; spun at {site['file'].string()}:{int(site['line'])}"

    def registers(self):
        """What it goes on with: see context/x86_64.hpp and context/x86_64.cpp. Not while it runs."""
        where = self.block["where"]
        stack = int(where["stack_pointer"])
        if where["resume_at"]:
            return {"rip": int(where["resume_at"]), "rsp": stack, "rbp": int(where["frame"]),
                    "rbx": int(where["base"])}
        words = gdb.Value(stack).cast(gdb.lookup_type("unsigned long").pointer())
        saved = dict(zip(("r15", "r14", "r13", "r12", "rbx", "rbp", "rip"),
                         (int(words[index]) for index in range(7))))
        return saved | {"rsp": stack + 56}

    def has_run(self):
        """A fresh one stands before the first instruction of its life."""
        if self.runs():
            return True
        if not self.block["where"]["stack_pointer"]:
            return False
        symbol = gdb.execute(f"info symbol {self.registers()['rip']}", to_string=True)
        return not symbol.startswith("motet_enter_context in ")


# ---- The rest knows only about fibers. ----


def all_fibers():
    for namespace, thread, runtime in runtimes():
        yield from fibers_of(namespace, thread, runtime)


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

        made = frame.create_unwind_info(Identity())
        for name, value in self.registers.items():
            made.add_saved_register(name, gdb.Value(value).cast(self.word))
        return made

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
    before = gdb.selected_thread()
    home = [each for each in gdb.selected_inferior().threads() if each.ptid[1] == number]
    if not home:
        raise gdb.GdbError(f"thread {number} is not there")
    home[0].switch()
    gdb.newest_frame().select()
    try:
        yield
    finally:
        if before is not None and before.is_valid():
            before.switch()


def execute(command):
    """Leaves out the thread's own frame, which stands before the fiber's."""
    if command.split()[0] in ("bt", "backtrace", "where"):
        text = gdb.execute(command, to_string=True)
        at = text.find("\n#1 ")
        gdb.write(text[at + 1:] if at >= 0 else text)
        return
    gdb.newest_frame().older().select()
    gdb.execute(command)


def execute_in(fiber, command):
    with on_thread(fiber.thread):
        if fiber.runs():
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
            mark = "*" if fiber.runs() else " "
            gdb.write(f"{mark} {fiber.label()} {fiber.state()}{fiber.wait()}{fiber.site()}\n")


class FiberCommand(gdb.Command):
    """fiber N COMMAND: runs a gdb command in the frames of fiber N.
fiber apply all COMMAND: runs it in those of each fiber."""

    def __init__(self):
        super().__init__("fiber", gdb.COMMAND_STACK, gdb.COMPLETE_COMMAND)

    def invoke(self, argument, from_tty):
        every = re.fullmatch(r"\s*apply\s+all\s+(\S.*)", argument)
        one = re.fullmatch(r"\s*(\d+)\s+(\S.*)", argument)
        if every:
            for fiber in list(all_fibers()):
                gdb.write(f"\n{fiber.label()} {fiber.state()}{fiber.wait()}\n")
                execute_in(fiber, every[1])
        elif one:
            chosen = [fiber for fiber in all_fibers() if fiber.number == int(one[1])]
            if not chosen:
                raise gdb.GdbError(f"there is no fiber {one[1]}: fibers lists those that there are")
            execute_in(chosen[0], one[2])
        else:
            raise gdb.GdbError("usage: fiber N COMMAND, or fiber apply all COMMAND")


FibersCommand()
FiberCommand()
