#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program of others with motet-posix and motet-posix-locks preloaded, and with its main function as a fiber: its output and
its exit status are those that it has without. Exits with 77 if it, or its server, is not installed.

usage: whole_programs_test.py LIBRARY LOCKS curl|git|psql|redis
"""

import contextlib
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import clients_test

GIT_BACKEND = "/usr/lib/git-core/git-http-backend"
NEEDED = {"curl": ["curl"], "git": ["git", GIT_BACKEND], "psql": ["psql"], "redis": ["redis-cli"]}


class Requests(http.server.CGIHTTPRequestHandler):
    """Files, git's protocol, what takes long, and what echoes."""

    have_fork = False  # which would change the user

    def do_GET(self):
        if self.path == "/slow":
            time.sleep(0.5)
        super().do_GET()

    def do_POST(self):
        if self.is_cgi():
            super().do_POST()
            return
        body = b""
        while len(body) < int(self.headers["Content-Length"]):
            body += self.rfile.read(1_000_000)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def web(place):
    files = pathlib.Path(place, "files")
    (files / "cgi-bin").mkdir(parents=True)
    (files / "large").write_bytes(os.urandom(3_000_000))
    (files / "slow").write_text("slow\n")
    backend = files / "cgi-bin" / "git"
    backend.write_text(f"#!/bin/sh\nGIT_PROJECT_ROOT={place}/repositories GIT_HTTP_EXPORT_ALL=1 exec {GIT_BACKEND}\n")
    backend.chmod(0o755)

    def handler(*arguments):
        return Requests(*arguments, directory=str(files))

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.handle_error = lambda *_: None  # a client may leave early
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def shell(script):
    return ["sh", "-c", script]


def curl_commands(place):
    with web(place) as url:
        yield shell(f"curl -sS {url}/large | sha256sum")
        yield shell(f"curl -sS --limit-rate 20M -r 1000-2000000 {url}/large | sha256sum")
        yield shell(f"curl -sS --data-binary @{place}/files/large {url}/echo | sha256sum")
        yield shell(f"curl -sS -Z {url}/large {url}/slow {url}/slow -o {place}/1 -o {place}/2 -o {place}/3 2>/dev/null; cat {place}/[123] | sha256sum")
        yield ["curl", "-sS", "--max-time", "0.2", "-o", "/dev/null", "-w", "%{http_code}", f"{url}/slow"]
        yield ["curl", "-sSf", f"{url}/none"]
        yield ["curl", "-sS", "http://localhost:1/"]


def git_commands(place):
    repository = f"{place}/repositories/one.git"
    author = "-c user.name=a -c user.email=a@b -c init.defaultBranch=main"
    subprocess.run(shell(f"""git {author} init -q --bare {repository} && git -C {repository} config http.receivepack true &&
        git {author} clone -q {repository} {place}/first && cd {place}/first && seq 100000 > numbers && git add numbers &&
        git {author} commit -qm first && git push -q"""), check=True, capture_output=True, timeout=50)
    with web(place) as url:
        remote = f"{url}/cgi-bin/git/one.git"
        yield shell(f"rm -rf {place}/copy; git clone -q {remote} {place}/copy && git -C {place}/copy log --format=%s && sha256sum < {place}/copy/numbers")
        yield shell(f"cd {place}/copy && git fetch -v 2>&1 && git ls-remote {remote}")
        yield shell(f"cd {place}/copy && git push -q origin HEAD:other-$$ && git push -q origin :other-$$")
        yield shell(f"rm -rf {place}/none; git clone -q {url}/cgi-bin/git/none.git {place}/none")
        yield ["git", "clone", "-q", "http://127.0.0.1:1/none.git", f"{place}/none"]


def psql_commands(place):
    with clients_test.postgres(place, 5) as server:
        psql = ["psql", "-X", "-A", "-t", server]
        yield [*psql, "-c", "SELECT sum(i) FROM generate_series(1, 100000) AS i", "-c", "SELECT pg_sleep(0.05)"]
        yield [*psql, "-c", "SELECT repeat('x', 3000000)"]
        yield [*psql, "-c", "SELECT 1/0"]
        yield [*psql, "-v", "ON_ERROR_STOP=1", "-c", "SET statement_timeout = 50", "-c", "SELECT pg_sleep(5)"]
        yield shell(f"seq 20000 | psql -X -q '{server}' -c 'CREATE TEMP TABLE t (i int)' -c '\\copy t FROM STDIN' -c 'SELECT count(*) FROM t'")
        yield shell(f"printf 'SELECT 1;\\n\\\\! echo shell\\nSELECT pg_sleep(0.02);\\n\\\\watch 0.01 c=2\\n' | psql -X -A -t '{server}' 2>&1 | head -20")
        yield ["psql", "-X", "host=127.0.0.1 port=1 user=nobody", "-c", "SELECT 1"]


def redis_commands(place):
    with clients_test.redis(place, 5) as server:
        client = f"redis-cli -p {server.rpartition(':')[2]}"
        yield shell(f"{client} flushall; {client} lpush list a b c; {client} blpop list 1; {client} blpop nothing 0.1")
        yield shell(f"seq 2000 | sed 's/.*/set key& value&/' | {client} | sort | uniq -c; {client} get key77")
        yield shell(f"seq 5000 | sed 's/.*/*3\\r\\n$3\\r\\nSET\\r\\n$1\\r\\na\\r\\n$1\\r\\nb\\r/' | {client} --pipe | grep -E 'errors|replies'")
        yield shell(f"{client} --scan --pattern 'key19*' | sort | sha256sum; {client} -r 3 -i 0.01 ping; {client} eval 'return 1 +' 0")
        yield ["redis-cli", "-p", "1", "ping"]


def outcome(command, variables):
    result = subprocess.run(command, input="", env=os.environ | variables, capture_output=True, text=True, timeout=50)
    return result.returncode, result.stdout, re.sub(r"after \d+ m", "after N m", result.stderr)


def failures(commands, library, locks):
    """A sentence for each command that differs with a library."""
    main = {"MOTET_POSIX_MAIN": "1"}
    settings = [{"LD_PRELOAD": library}, {"LD_PRELOAD": f"{locks}:{library}"} | main]
    for command in commands:
        expected = outcome(command, {})
        for variables in settings:
            found = outcome(command, variables)
            if found != expected:
                yield f"{command} with {variables}: {str(found)[:1000]} instead of {str(expected)[:1000]}"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    library, locks = map(os.path.abspath, sys.argv[1:3])
    name = sys.argv[3]
    for program in NEEDED[name]:
        if shutil.which(program) is None:
            clients_test.skip(program)
    with tempfile.TemporaryDirectory() as place:
        wrong = list(failures(globals()[f"{name}_commands"](place), library, locks))
    print(*wrong, sep="\n")
    sys.exit(1 if wrong else 0)


main()
