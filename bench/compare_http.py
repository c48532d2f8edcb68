#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures HTTP servers by wrk, stores by redis-benchmark, and TLS beside a bare loop of OpenSSL.

usage: compare_http.py BUILD-DIRECTORY [--quick] [--json FILE] [WHAT...]
  WHAT    hello, file, pipelined, kv, tls; all by default

Each figure is the median of three rounds, in which all servers take their turns. Server and load have a
processor each if there are two. Of a server both are told: requests a second, and microseconds of
its processor a request, the kernel's share included.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "tls"))
sys.path.insert(0, str(HERE.parent / "tests"))
from compare_echo import cores_apart
from world_test import make_certificates


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def await_port(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise RuntimeError("a server does not listen")


def on_core(core, command):
    return command if core is None else ["taskset", "-c", str(core), *command]


def processor_us(pid):
    """Of a process and its children."""
    cpu_time = 0
    for process in [pid, *children(pid)]:
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(") ", 1)[1].split()
        cpu_time += (int(fields[11]) + int(fields[12])) * 1e6 / os.sysconf("SC_CLK_TCK")
    return cpu_time


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Server:
    def __init__(self, command, port, core, **environment):
        self.port = port
        self.process = subprocess.Popen(on_core(core, command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={**os.environ, **environment})
        await_port(port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def nginx_configuration(place, port):
    (place / "nginx.conf").write_text(f"""
daemon off; pid {place}/pid; error_log /dev/null; worker_processes 1;
events {{ worker_connections 4096; }}
http {{
  access_log off; sendfile on; tcp_nopush on; open_file_cache max=100; keepalive_requests 1000000000;
  client_body_temp_path {place}/1; proxy_temp_path {place}/2; fastcgi_temp_path {place}/3;
  uwsgi_temp_path {place}/4; scgi_temp_path {place}/5; types {{ }} default_type text/plain;
  server {{
    listen 127.0.0.1:{port} backlog=4096; root {place}/files;
    location = /hello {{ return 200 "Hello, world\\n"; }}
  }}
}}
""")
    return ["nginx", "-e", "/dev/null", "-p", str(place), "-c", f"{place}/nginx.conf"]


def http_servers(build, place, core):
    """Functions that start a server each, by name."""
    bench, files = build / "bench", str(place / "files")

    def motet(backend):
        def start(_):
            port = free_port()
            return Server([str(bench / "motet_http"), str(port), files], port, core, MOTET_BACKEND=backend)
        return start

    def nginx(_):
        port = free_port()
        return Server(nginx_configuration(place, port), port, core)

    def go(_):
        port = free_port()
        return Server([str(bench / "go_http"), str(port), files], port, core, GOMAXPROCS="1")

    def raw(size):
        port = free_port()
        return Server([str(bench / "raw_epoll_http"), "--port", str(port), "--bytes", str(size)], port, core)

    servers = {"motet io_uring": motet("io_uring"), "motet libev": motet("libev"), "raw epoll": raw}
    if shutil.which("nginx"):
        servers["nginx"] = nginx
    if (bench / "go_http").exists():
        servers["Go"] = go
    return servers


def wrk(server, path, connections, seconds, core, script=None):
    start_time = processor_us(server.process.pid)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s"]
    command += ["-s", str(script)] if script else []
    result = subprocess.run(on_core(core, [*command, f"http://127.0.0.1:{server.port}{path}"]), capture_output=True,
                            text=True, check=True)
    cpu_time = processor_us(server.process.pid) - start_time
    assert "Non-2xx" not in result.stdout, result.stdout
    requests = int(re.search(r"(\d+) requests in", result.stdout)[1])
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", result.stdout)[1])
    return {"per_second": rate, "processor_us": cpu_time / requests}


def http_round(build, place, seconds, rows, kinds, quick):
    of_server, of_load = cores_apart()
    cases = []
    if "hello" in kinds:
        cases += [("hello, 50 connections", "/hello", 50, None), ("hello, 500 connections", "/hello", 500, None)]
    if "file" in kinds:
        cases += [("4 KiB file, 50 connections", "/page", 50, None), ("4 KiB file, 500 connections", "/page", 500, None),
                  ("1 MiB file, 50 connections", "/large", 50, None)]
    if "pipelined" in kinds:
        cases += [("hello, 50 connections, 16 at once", "/hello", 50, HERE / "pipelined.lua")]
    if quick:
        cases = [case for case in cases if case[2] == 50 and case[1] != "/large"]
    sizes = {"/hello": 13, "/page": 4096, "/large": 1 << 20}
    for name, path, connections, script in cases:
        for server_name, start in http_servers(build, place, of_server).items():
            if path == "/large" and server_name == "raw epoll":
                continue  # it sends what a socket takes at once
            with start(sizes[path]) as server:
                rows.setdefault(name, {}).setdefault(server_name, []).append(
                    wrk(server, path, connections, seconds, of_load, script))


def kv_round(build, _, seconds, rows):
    of_server, of_load = cores_apart()
    stores = {f"motet {backend}": ([str(build / "examples/kv_server")], {"MOTET_BACKEND": backend})
              for backend in ("io_uring", "libev")}
    if shutil.which("redis-server"):
        stores["redis"] = (["redis-server", "--save", "", "--appendonly", "no"], {})
    for pipelined in (1, 16):
        for name, (command, environment) in stores.items():
            port = free_port()
            with Server([*command, "--port", str(port)], port, of_server, **environment) as server:
                count = int(seconds * 80_000 * (1 if pipelined == 1 else 8))
                start_time = processor_us(server.process.pid)
                result = subprocess.run(
                    on_core(of_load, ["redis-benchmark", "-p", str(port), "-q", "-c", "50", "-n", str(count), "-P",
                                      str(pipelined), "-t", "set,get"]), capture_output=True, text=True, check=True)
                cpu_time = processor_us(server.process.pid) - start_time
                rates = [float(rate) for rate in re.findall(r"([\d.]+) requests per second", result.stdout)]
                rows.setdefault(f"SET and GET, 50 connections, -P {pipelined}", {}).setdefault(name, []).append(
                    {"per_second": statistics.mean(rates[-2:]), "processor_us": cpu_time / count / 2})


def tls_round(build, place, seconds, rows):
    bench = str(build / "bench/tls_bench")
    files = [f"{place}/own.pem", f"{place}/own.key", f"{place}/ca.pem"]
    cases = [("handshakes", ["handshakes"], [str(int(seconds * 1000))]),
             ("bulk, pieces of 16 KiB", ["bulk"], [str(int(seconds * 60_000)), "16384"]),
             ("bulk, pieces of 64 KiB", ["bulk"], [str(int(seconds * 15_000)), "65536"])]
    for name, kind, size in cases:
        for peer, backend in (("bare", ""), ("motet", "io_uring"), ("motet", "libev")):
            result = subprocess.run([bench, *kind, peer, *files, *size], capture_output=True, text=True, check=True,
                                    env={**os.environ, "MOTET_BACKEND": backend} if backend else os.environ)
            rate, cpu_time = map(float, result.stdout.split())
            rows.setdefault(name, {}).setdefault(f"{peer} {backend}".strip(), []).append(
                {"per_second": rate, "processor_us": cpu_time})


def medians(rows):
    return {row: {name: {key: statistics.median(sample[key] for sample in rounds) for key in rounds[0]}
                  for name, rounds in servers.items()} for row, servers in rows.items()}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("--json")
    arguments.add_argument("what", nargs="*", default=["hello", "file", "pipelined", "kv", "tls"])
    options = arguments.parse_intermixed_args()
    seconds, rounds = (1, 1) if options.quick else (3, 3)  # wrk counts in whole seconds
    rows = {}
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        place.chmod(0o755)
        (place / "files").mkdir()
        (place / "files/page").write_bytes(b"x" * 4096)
        (place / "files/large").write_bytes(b"x" * (1 << 20))
        make_certificates(place)
        for _ in range(rounds):
            http_round(options.build, place, seconds, rows, options.what, options.quick)
            if "kv" in options.what:
                kv_round(options.build, place, seconds, rows)
            if "tls" in options.what:
                tls_round(options.build, place, seconds, rows)
    results = medians(rows)
    for row, servers in results.items():
        print(row)
        for server, figures in servers.items():
            print(f"  {server:16} {figures['per_second']:12,.0f} {figures['processor_us']:8.3f}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
