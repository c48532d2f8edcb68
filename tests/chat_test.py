#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The chat server with several clients that are socat, one of which reads nothing.

usage: chat_test.py CHAT-SERVER
"""

import re
import shutil
import signal
import subprocess
import sys
import threading
import time

LINES = 8_000  # of 900 bytes: more than all buffers on the way to somebody who does not read
BURST = 40  # lines, which whoever reads has room for


class Client:
    """A socat; what it prints is collected."""

    def __init__(self, port, name, options=""):
        self.process = subprocess.Popen(["socat", "-", f"TCP:127.0.0.1:{port}{options}"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.heard = []
        self.known = set()
        self.news = threading.Condition()
        self.reader = threading.Thread(target=self.listen)
        self.reader.start()
        self.say(name)

    def listen(self):
        for line in self.process.stdout:
            with self.news:
                self.heard.append(line.rstrip("\n"))
                self.known.add(self.heard[-1])
                self.news.notify()

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def wait_for(self, text, seconds=20):
        with self.news:
            success = self.news.wait_for(lambda: text in self.known, seconds)
        assert success, f"never heard {text!r}"

    def leave(self):
        self.process.stdin.close()
        assert self.process.wait(20) == 0
        self.reader.join()


def check(program):
    server = subprocess.Popen([program], stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        assert line.startswith("listening on 127.0.0.1:"), line
        port = int(line.rsplit(":", 1)[1])

        anna, ben = Client(port, "anna"), None
        anna.wait_for("* anna joins")
        ben = Client(port, "ben")
        anna.wait_for("* ben joins")
        ben.say("good morning")
        anna.wait_for("ben: good morning")
        ben.wait_for("ben: good morning")

        deaf = Client(port, "deaf", ",rcvbuf=4096")
        anna.wait_for("* deaf joins")
        deaf.process.send_signal(signal.SIGSTOP)
        slowest = 0
        for number in range(LINES):
            anna.say(f"{number} {'x' * 900}")
            if number % BURST == BURST - 1:  # heard by somebody who reads, whatever the deaf one does
                begin = time.monotonic()
                anna.say(f"mark {number}")
                ben.wait_for(f"anna: mark {number}")
                slowest = max(slowest, time.monotonic() - begin)
        assert slowest < 10, slowest
        deaf.process.send_signal(signal.SIGCONT)
        count = 0
        while not any(line.startswith("anna: can you hear me") for line in list(deaf.heard)):
            count += 1
            assert count < 200
            anna.say(f"can you hear me? {count}")
            time.sleep(0.1)
        miss_count = sum(int(n) for n in re.findall(r"you missed (\d+)", "\n".join(deaf.heard)))
        assert miss_count > 0, "it missed nothing: the test is too small"
        anna.say("that was all")
        deaf.wait_for("anna: that was all")
        message_count = sum(line.startswith("anna: ") for line in deaf.heard)
        miss_count = sum(int(n) for n in re.findall(r"you missed (\d+)", "\n".join(deaf.heard)))
        assert message_count + miss_count == LINES + LINES // BURST + count + 1, (message_count, miss_count, count)

        ben.leave()
        anna.wait_for("* ben leaves")
        intruder = Client(port, "y" * 3_000)  # no name that the server takes
        assert intruder.process.wait(20) == 0 and intruder.heard == []
        anna.say("still here")
        anna.wait_for("anna: still here")
        for client in (anna, deaf):
            client.leave()
    finally:
        server.terminate()
        server.wait(20)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if shutil.which("socat") is None:
        sys.exit(77)
    check(sys.argv[1])


if __name__ == "__main__":
    main()
