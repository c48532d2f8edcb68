#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when the library imports a function of the C library in which a thread can wait.

A program may replace these functions with ones that call motet, so motet makes its system calls
directly: see runtime/base/system_calls.hpp.

usage: imports_test.py LIBRARY | --self-test
"""

import re
import subprocess
import sys

# Without the suffixes of glibc's other names for them: see stem().
WAITING = set("""
    accept accept4 clock_nanosleep close close_range closefrom connect copy_file_range creat dup2 dup3 epoll_pwait
    epoll_pwait2 epoll_wait fcntl flock getaddrinfo gethostbyaddr gethostbyname gethostbyname2 getnameinfo lockf mq_receive
    mq_send msgrcv msgsnd nanosleep open openat pause pclose poll popen ppoll pread preadv preadv2 pselect pthread_join pwrite
    pwritev pwritev2 read readv recv recvfrom recvmmsg recvmsg res_query res_search select sem_clockwait sem_timedwait
    sem_wait semop send sendfile sendmmsg sendmsg sendto shutdown sigsuspend sigtimedwait sigwait sigwaitinfo sleep splice
    system tee usleep wait wait3 wait4 waitid waitpid write writev
    """.split())
EXCEPTIONS = {
    "getaddrinfo": "called on a thread without fibers",
    "pthread_join": "called when the thread has left its last function",
}


def stem(symbol):
    """`read` of `__read_chk@GLIBC_2.4`, `preadv2` of `preadv64v2`."""
    name = symbol.split("@")[0]
    name = re.sub(r"^__(?:libc_)?|_(?:chk|2)$|_r$", "", name)
    return name.replace("v64v2", "v2").removesuffix("64")


def problems(listing):
    """What is wrong in an output of `nm -D -P`, a sentence each."""
    symbols = [line.split()[0] for line in listing.splitlines() if line.split()[1:2] == ["U"]]
    if "syscall" not in map(stem, symbols):
        yield "the library makes no system call directly"
    for symbol in symbols:
        if stem(symbol) in WAITING - EXCEPTIONS.keys():
            yield f"{symbol} is imported: call it through base/system_calls.hpp"
    for name in EXCEPTIONS.keys() - set(map(stem, symbols)):
        yield f"{name} is not imported: it needs no exception"


def self_test():
    right = ["syscall@GLIBC_2.2.5 U", "getaddrinfo@GLIBC_2.2.5 U", "pthread_join@GLIBC_2.34 U", "mmap64@GLIBC_2.2.5 U",
             "read T 0 1"]
    assert not list(problems("\n".join(right)))
    for symbol in ("read", "__read_chk@GLIBC_2.4", "preadv64v2@GLIBC_2.26", "fcntl64@GLIBC_2.28", "__openat64_2",
                   "gethostbyname_r", "sendfile64"):
        assert len(list(problems("\n".join([*right, f"{symbol} U"])))) == 1, symbol
    assert len(list(problems("\n".join(right[1:])))) == 1
    assert len(list(problems("\n".join(right[:2])))) == 1


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    listing = subprocess.run(["nm", "-D", "-P", sys.argv[1]], check=True, capture_output=True, text=True).stdout
    complaints = list(problems(listing))
    print(*complaints, sep="\n")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
