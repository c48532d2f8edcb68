# SPDX-License-Identifier: MIT
"""A server under test that says on which port of the loopback it listens."""

import subprocess


class Listening:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        assert line.startswith("listening on 127.0.0.1:"), (line, self.process.stderr.read())
        self.port = int(line.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
