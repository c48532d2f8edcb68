#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Starts a server, and clients that were written for threads, in fibers: all calls of a second take a second together, and
a limit ends each in time. Exits with 77 if the server is not installed.

usage: clients_test.py PROGRAM redis|postgres|https|mariadb|ldap [COUNT]
"""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

NGINX = """
daemon off; master_process off; pid {place}/pid; error_log {place}/log;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  server {{
    listen 127.0.0.1:{port} ssl backlog=2048; keepalive_timeout 60s;
    ssl_certificate {place}/certificate.pem; ssl_certificate_key {place}/key.pem;
    location /quick {{ return 200 quick; }}
    location /slow {{ auth_basic slow; auth_basic_user_file /dev/null; auth_delay 1s; error_page 401 =200 /quick; }}
  }}
}}
"""


def skip(name):
    print(f"{name} is not installed")
    sys.exit(77)


def free_port():
    with socket.socket() as any_socket:
        any_socket.bind(("127.0.0.1", 0))
        return any_socket.getsockname()[1]


def wait_for(port, process):
    for _ in range(500):
        assert process.poll() is None, "the server has ended"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    raise AssertionError("the server does not answer")


@contextlib.contextmanager
def running(*command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=20)


@contextlib.contextmanager
def redis(place, _count):
    program = shutil.which("redis-server") or skip("redis-server")
    port = free_port()
    with running(program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", place, "--hz", "100") as server:
        wait_for(port, server)
        yield f"127.0.0.1:{port}"


@contextlib.contextmanager
def postgres(place, count):
    folders = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders:
        skip("PostgreSQL")
    as_user = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    os.chmod(place, 0o777)

    def server(*command):
        subprocess.run([str(folders[-1] / command[0]), *command[1:]], check=True, stdout=subprocess.DEVNULL, timeout=50, cwd=place,
                       **as_user)

    server("initdb", "-D", f"{place}/data", "-A", "trust", "-U", "tester", "--no-sync")
    server("pg_ctl", "-D", f"{place}/data", "-w", "-l", f"{place}/log", "-o",
           f"-c listen_addresses='' -k {place} -c fsync=off -c max_connections={3 * count + 10} -c shared_buffers=16MB", "start")
    try:
        yield f"host={place} user=tester dbname=postgres"
    finally:
        server("pg_ctl", "-D", f"{place}/data", "-m", "immediate", "stop")


@contextlib.contextmanager
def mariadb(place, count):
    program = shutil.which("mariadbd") or skip("MariaDB")
    subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={place}/data", "--auth-root-authentication-method=normal",
                    "--skip-test-db"], check=True, capture_output=True, timeout=50)
    listens_at = f"{place}/socket"
    as_root = ["--user=root"] if os.geteuid() == 0 else []
    with running(program, "--no-defaults", f"--datadir={place}/data", f"--socket={listens_at}", "--skip-networking", *as_root,
                 f"--max-connections={2 * count + 10}", f"--log-error={place}/log", "--innodb-buffer-pool-size=8M") as server:
        for _ in range(500):
            assert server.poll() is None, pathlib.Path(f"{place}/log").read_text()
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
                probe.connect(listens_at)
                break
            time.sleep(0.02)
        else:
            raise AssertionError("the server does not answer")
        yield listens_at


# Its overlay retcode waits before it answers, in a thread of the server.
SLAPD = """
include /etc/ldap/schema/core.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload retcode
pidfile {place}/pid
threads {threads}
database mdb
suffix dc=tests
directory {place}
overlay retcode
retcode-parent ou=answers,dc=tests
retcode-item cn=slow 0x00 sleeptime=1
"""


@contextlib.contextmanager
def ldap(place, count):
    program = shutil.which("slapd") or skip("slapd")
    configuration = pathlib.Path(place) / "slapd.conf"
    configuration.write_text(SLAPD.format(place=place, threads=2 * count))
    port = free_port()
    with running(program, "-h", f"ldap://127.0.0.1:{port}", "-f", str(configuration), "-d", "0") as server:
        wait_for(port, server)
        yield f"ldap://127.0.0.1:{port}"


@contextlib.contextmanager
def https(place, _count):
    program = shutil.which("nginx") or skip("nginx")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{place}/key.pem", "-out", f"{place}/certificate.pem"], check=True,
                   capture_output=True)
    port = free_port()
    configuration = pathlib.Path(place) / "nginx.conf"
    configuration.write_text(NGINX.format(place=place, port=port))
    with running(program, "-c", str(configuration), "-p", place) as server:
        wait_for(port, server)
        yield f"https://127.0.0.1:{port}"


def numbers(program, kind, server, count, *more):
    result = subprocess.run([program, kind, server, str(count), *more], capture_output=True, text=True, timeout=50)
    print(kind, count, *more, result.stdout, result.stderr)
    assert result.returncode == 0, result.returncode
    return {name: float(value) for name, value in (word.split("=") for word in result.stdout.split())}


def check(program, kind, server, count):
    """The limits are generous, because other programs may run meanwhile."""
    result = numbers(program, kind, server, count, "fibers")
    assert result["successes"] == count, result
    assert 990 <= result["elapsed"] < 2500, result
    assert result["descriptors"] == 0, result
    result = numbers(program, kind, server, count, "fibers", "300")
    assert result["ended"] == count and result["successes"] == 0, result
    assert result["latest"] < 500, result
    assert result["descriptors"] == 0, result
    for other in ("threads", "offload", "asynchronous"):
        result = numbers(program, kind, server, min(count, 20), other)
        assert result["successes"] == min(count, 20), result


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    program, kind = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) == 4 else 50
    with tempfile.TemporaryDirectory() as place, globals()[kind](place, count) as server:
        check(program, kind, server, count)


if __name__ == "__main__":
    main()
