#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that people judge a runtime by, driven by the clients that people use.

usage: programs_test.py NAME PROGRAM [MORE-PROGRAMS]
"""

import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path += [str(pathlib.Path(__file__).resolve().parent / folder) for folder in ("tls", "posix")]
import clients_test
from listening import Listening
from world_test import make_certificates, run


def stop(server):
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=20) == 128 + signal.SIGTERM, server.process.stderr.read()


def http_hello(program):
    with Listening(program, "--port", "0") as server:
        url = f"http://127.0.0.1:{server.port}"
        assert run("curl", "-sS", url + "/") == "Hello, world\n"
        assert run("curl", "-sS", url + "/hello/you%20there") == "Hello, you there\n"
        assert run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", url + "/none") == "404"
        data = "x" * 1_000_000
        assert run("curl", "-sS", "--data-binary", "@-", url + "/echo", give=data) == data
        assert run("curl", "-sS", "-T", "-", "-X", "POST", url + "/echo", give=data) == data  # in chunks
        output = run("wrk", "-t1", "-c50", "-d1", url + "/")
        assert "Non-2xx" not in output and "Socket errors" not in output, output
        output = run("h2load", "--h1", "-n", "2000", "-c", "20", url + "/")
        assert "2000 succeeded, 0 failed" in output, output
        stop(server)


def https_files(program):
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        make_certificates(place)
        (place / "page.html").write_text("a page")
        (place / "large").write_bytes(os.urandom(3_000_000))
        with Listening(program, name, f"{place}/own.pem", f"{place}/own.key", "0") as server:
            url = f"https://example.test:{server.port}"
            curl = ["curl", "-sS", "--resolve", f"example.test:{server.port}:127.0.0.1", "--cacert", f"{place}/ca.pem"]
            assert run(*curl, url + "/page.html") == "a page"
            run(*curl, "-o", f"{place}/copy", url + "/large")
            assert (place / "copy").read_bytes() == (place / "large").read_bytes()
            run(*curl, "-o", f"{place}/part", "-r", "1000-2000", url + "/large")
            assert (place / "part").read_bytes() == (place / "large").read_bytes()[1000:2001]
            run(*curl, "--etag-save", f"{place}/tag", "-o", "/dev/null", url + "/page.html")
            code = ["-o", "/dev/null", "-w", "%{http_code}"]
            assert run(*curl, "--etag-compare", f"{place}/tag", *code, url + "/page.html") == "304"
            assert run(*curl, "--path-as-is", *code, url + "/../own.key") == "404"
            output = run("wrk", "-t1", "-c20", "-d1", f"https://127.0.0.1:{server.port}/page.html")
            assert "Non-2xx" not in output and "Socket errors" not in output, output
            output = run("h2load", "--h1", "-n", "500", "-c", "10", f"https://127.0.0.1:{server.port}/page.html")
            assert "500 succeeded, 0 failed" in output, output
            stop(server)


def redis(port, *words, expect=0):
    return run("redis-cli", "-p", str(port), *words, expect=expect).strip()


def kv_commands(program):
    with Listening(program, "--port", "0") as server:
        ask = lambda *words: redis(server.port, *words)
        assert ask("set", "a", "1") == "OK"
        assert ask("incr", "a") == "2"
        assert ask("mget", "a", "none") == "2"
        assert ask("lpush", "l", "x", "y", "z") == "3"
        assert ask("lrange", "l", "0", "-1") == "z\ny\nx"
        assert ask("lrange", "l", "-2", "5") == "y\nx"
        assert ask("del", "a", "none") == "1"
        assert ask("get", "a") == ""
        assert "WRONGTYPE" in ask("incr", "l")
        assert "unknown command" in ask("nonsense")
        assert "too few" in ask("set", "x")
        ask("set", "gone", "soon")
        assert ask("expire", "gone", "1") == "1"
        time.sleep(1.1)
        assert ask("get", "gone") == ""
        output = run("redis-benchmark", "-p", str(server.port), "-q", "-n", "20000", "-P", "16", "-c", "20", "-t",
                     "set,get,incr,lpush,lrange_100")
        assert output.count("requests per second") >= 4 and "rror" not in output.replace("CONFIG", ""), output
        for nonsense in (b"GET / HTTP/1.1\r\n\r\n", b"*1\r\n$-1\r\n", b"*99999999\r\n", b"*1\r\n$3\r\nabcXY", b"\0" * 100):
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(nonsense)
                assert b"Protocol error" in connection.recv(1000), nonsense
        stop(server)


def kv_messages(program):
    with Listening(program, "--port", "0") as server:
        subscriber = subprocess.Popen(["redis-cli", "-p", str(server.port), "subscribe", "news"], stdout=subprocess.PIPE,
                                      text=True)
        assert [subscriber.stdout.readline().strip() for _ in range(3)] == ["subscribe", "news", "1"]
        for index in range(5):
            assert redis(server.port, "publish", "news", f"item {index}") == "1"
        lines = [subscriber.stdout.readline().strip() for _ in range(15)]
        assert lines[2::3] == [f"item {index}" for index in range(5)], lines
        subscriber.kill()
        subscriber.wait()
        for _ in range(100):
            if redis(server.port, "publish", "news", "nobody") == "0":
                break
            time.sleep(0.02)
        else:
            raise AssertionError("a subscriber that is gone is still told")


def kv_survives(program):
    """What was acknowledged before a kill is there afterwards; a killed log ends anywhere."""
    with tempfile.TemporaryDirectory() as name:
        log = f"{name}/log"
        confirmed_values = {}
        for generation in range(4):
            with Listening(program, "--port", "0", "--log", log) as server:
                for key, value in confirmed_values.items():
                    assert redis(server.port, "get", key) == value, (generation, key)
                confirmed_values.update(write_until_killed(server, generation))
            assert confirmed_values
            with open(log, "ab") as damaged:
                damaged.write(b"*3\r\n$3\r\nSET\r\n$4\r\nhal"[: random.randrange(20)])


def write_until_killed(server, generation):
    confirmed_values = {}

    def write(number):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            answers = connection.makefile("rb")
            for index in range(100_000):
                key, value = f"k{generation}.{number}.{index}", str(random.random())
                command = f"*3\r\n$3\r\nSET\r\n${len(key)}\r\n{key}\r\n${len(value)}\r\n{value}\r\n"
                try:
                    connection.sendall(command.encode())
                    if answers.readline() != b"+OK\r\n":
                        return
                except OSError:
                    return
                confirmed_values[key] = value

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    time.sleep(0.1 + random.random() / 10)
    server.process.send_signal(signal.SIGKILL)
    for writer in writers:
        writer.join()
    sample = random.sample(sorted(confirmed_values), min(20, len(confirmed_values)))
    return {key: confirmed_values[key] for key in sample}


def kv_server(program):
    kv_commands(program)
    kv_messages(program)
    kv_survives(program)


def free_ports(count):
    """Of UDP."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def raft(program):
    """Three nodes agree on what they are given, and go on when one of them is killed."""
    with tempfile.TemporaryDirectory() as place:
        addresses = [f"127.0.0.1:{port}" for port in free_ports(3)]
        nodes = [subprocess.Popen([os.path.abspath(program), str(index), *addresses], cwd=place, text=True, bufsize=1,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE) for index in range(3)]
        try:
            for index, node in enumerate(nodes):
                node.stdin.write(f"from {index}\n")
            # Only a leader's lines are agreed on.
            agreed = [node.stdout.readline() for node in nodes]
            assert agreed[0].startswith("1 from ") and agreed == agreed[:1] * 3, agreed
            leader = int(agreed[0].split()[-1])
            nodes[leader].kill()
            nodes[leader].wait(timeout=20)
            others = [node for index, node in enumerate(nodes) if index != leader]
            agreed = [node.stdout.readline() for node in others]
            assert agreed[0].startswith("2 from ") and agreed == agreed[:1] * 2, agreed
            for node in others:
                node.send_signal(signal.SIGTERM)
                assert node.wait(timeout=20) == 128 + signal.SIGTERM
        finally:
            for node in nodes:
                node.kill()
                node.communicate()


def fetch_many(program, hello):
    with Listening(hello, "--port", "0") as server:
        url = f"http://127.0.0.1:{server.port}"
        addresses = [f"{url}/hello/{index}" for index in range(200)]
        output = run(program, give="\n".join(addresses))
        lines = output.splitlines()
        assert len(lines) == 201 and lines[-1] == "200 of 200", output
        assert all(line.startswith("200 ") for line in lines[:-1]), output
        output = run(program, give=f"{url}/none\nhttp://127.0.0.1:1/\nnonsense\n")
        assert "404 " in output and output.count("failed: ") == 2 and output.endswith("3 of 3\n"), output
    with socket.create_server(("127.0.0.1", 0)) as silent:
        output = run(program, "--within", "0.2", give=f"http://127.0.0.1:{silent.getsockname()[1]}/\n", expect=1)
        assert "0 of 1, the time is up" in output, output


def reverse_proxy(program, hello):
    with Listening(hello, "--port", "0") as first, Listening(hello, "--port", "0") as second:
        servers = [f"http://127.0.0.1:{server.port}" for server in (first, second)]
        with Listening(program, "0", *servers) as proxy:
            url = f"http://127.0.0.1:{proxy.port}"
            for _ in range(4):
                assert run("curl", "-sS", url + "/hello/you") == "Hello, you\n"
            data = "x" * 1_000_000
            assert run("curl", "-sS", "--data-binary", "@-", url + "/echo", give=data) == data
            assert run("curl", "-sS", "-T", "-", "-X", "POST", url + "/echo", give=data) == data
            assert "HTTP/1.1 405" in run("curl", "-sSi", "-X", "DELETE", url + "/")
            assert "Content-Length: 13" in run("curl", "-sSI", url + "/")
            output = run("wrk", "-t1", "-c20", "-d1", url + "/")
            assert "Non-2xx" not in output and "Socket errors" not in output, output
            stop(first)
            stop(second)
            assert run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", url + "/") == "502"
            stop(proxy)


def websocket_chat(program):
    import asyncio
    import websockets

    async def talk(server):
        url = f"ws://127.0.0.1:{server.port}/chat"
        async with websockets.connect(url) as first, websockets.connect(url) as second:
            await asyncio.wait_for(await first.ping(), 10)
            for message in ["hello", "", "\u00e4\u4f60", "x" * 60_000]:
                await first.send(message)
                assert await first.recv() == message
                assert await second.recv() == message
            await second.send(["in ", "several ", "parts"])
            assert await first.recv() == await second.recv() == "in several parts"
            async with websockets.connect(url) as third:
                await third.send("brief")
            assert await first.recv() == "brief"
            async with websockets.connect(url) as greedy:
                await greedy.send("x" * 70_000)
                try:
                    await greedy.recv()
                    raise AssertionError("a message beyond the limit was taken")
                except websockets.ConnectionClosedError as error:
                    assert error.rcvd.code == 1009, error
            clients = [await websockets.connect(url) for _ in range(50)]
            await first.send("to all")
            assert {await client.recv() for client in clients} == {"to all"}
            server.process.send_signal(signal.SIGTERM)
            for client in clients:
                try:
                    await asyncio.wait_for(client.recv(), 10)
                    raise AssertionError("the server goes on")
                except websockets.ConnectionClosedOK as error:
                    assert (error.rcvd.code, error.rcvd.reason) == (1001, "good night"), error

    with Listening(program, "--port", "0") as server:
        asyncio.run(asyncio.wait_for(talk(server), 50))
        assert server.process.wait(timeout=20) == 128 + signal.SIGTERM, server.process.stderr.read()


def pg_queries(program):
    with tempfile.TemporaryDirectory() as place, clients_test.postgres(place, 30) as server:
        output = run(program, server)
    assert "sum 1275" in output and "cancelled, and the server still runs 0" in output, output
    duration = int(output.split("connections: ")[1].split()[0])
    assert 250 <= duration < 2500, output


def pg_pool(program):
    with tempfile.TemporaryDirectory() as place, clients_test.postgres(place, 30) as server:
        output = run(program, server)
    duration = int(output.split("0.1 s: ")[1].split()[0])
    assert 400 <= duration < 2000, output
    assert "rolled back, tables: 0" in output and "too slow, still running: 0" in output, output
    assert "connections, some of them new: 5" in output, output


def redis_pool(program):
    with tempfile.TemporaryDirectory() as place, clients_test.redis(place, 30) as server:
        output = run(program, server.rpartition(":")[2])
    duration = int(output.split("0.1 s: ")[1].split()[0])
    assert 400 <= duration < 2000, output
    assert "replies: 3, a: 2" in output and "given up, a: 2" in output, output
    assert "too slow; next reply: PONG" in output and "reconnected: PONG" in output, output


def colour_free(program):
    with tempfile.TemporaryDirectory() as place, clients_test.https(place, 0) as server:
        output = run(program, f"{server}/slow", f"{place}/certificate.pem")
    assert output.count("5 bytes") == 5 and "too late" in output, output
    times = {line.partition(": ")[0]: float(line.split()[-2]) for line in output.splitlines() if line.endswith(" s")}
    assert 0.9 < times["two, in fibers"] < 1.8 and 0.9 < times["a thousand naps, in fibers"] < 1.8, output
    assert 0.3 <= times["a download that may take 0.3 s"] < 0.8, output


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    globals()[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
