#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TLS with other programs at the other end: openssl's client and server, curl, nginx.

usage: world_test.py TLS-PEER [NGINX]
"""

import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from listening import Listening


def run(*command, give=None, expect=0):
    result = subprocess.run(command, input=give, text=True, capture_output=True, timeout=20)
    assert expect is None or result.returncode == expect, (command, result)
    return result.stdout + result.stderr


def make_certificates(place):
    """An authority's, and one that it has signed for example.test and 127.0.0.1."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    run("openssl", "req", "-x509", *key, "-keyout", f"{place}/ca.key", "-out", f"{place}/ca.pem", "-days", "2",
        "-subj", "/CN=authority", "-addext", "basicConstraints=critical,CA:TRUE")
    run("openssl", "req", *key, "-keyout", f"{place}/own.key", "-out", f"{place}/own.csr", "-subj", "/CN=own")
    (place / "names").write_text("subjectAltName=DNS:example.test,IP:127.0.0.1\n")
    run("openssl", "x509", "-req", "-in", f"{place}/own.csr", "-CA", f"{place}/ca.pem", "-CAkey", f"{place}/ca.key",
        "-days", "2", "-extfile", f"{place}/names", "-out", f"{place}/own.pem")


def ask(port, place, *options, give="a line\n", expect=0):
    return run("openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile", f"{place}/ca.pem", "-servername",
               "example.test", "-verify_return_error", "-ign_eof", *options, give=give, expect=expect)


def serves_openssl(peer, place):
    with Listening(peer, "serve", f"{place}/own.pem", f"{place}/own.key") as server:
        for version in ("-tls1_2", "-tls1_3"):
            output = ask(server.port, place, version, "-alpn", "echo", give="GET /10 HTTP/1.0\n\n")
            assert "xxxxxxxxxx" in output and "ALPN protocol: echo" in output, output
            assert "closed" in output and "unexpected eof" not in output, output
        ticket = f"{place}/ticket"
        assert "New, TLSv1.3" in ask(server.port, place, "-sess_out", ticket, give="GET /0 HTTP/1.0\n\n")
        assert "Reused, TLSv1.3" in ask(server.port, place, "-sess_in", ticket, give="GET /0 HTTP/1.0\n\n")
        assert "no application protocol" in ask(server.port, place, "-alpn", "other", expect=1)
        assert "Cipher is (NONE)" in ask(server.port, place, "-tls1_1", expect=1)


def serves_curl(peer, place):
    with Listening(peer, "serve", f"{place}/own.pem", f"{place}/own.key") as server:
        url = f"https://example.test:{server.port}"
        curl = ["curl", "-sS", "--resolve", f"example.test:{server.port}:127.0.0.1", "--cacert", f"{place}/ca.pem"]
        for size in (0, 1, 100_000, 5_000_000):
            assert run(*curl, f"{url}/{size}") == "x" * size
        refused = run("curl", "-sS", "--resolve", f"example.test:{server.port}:127.0.0.1", f"{url}/1", expect=60)
        assert "unable to get local issuer" in refused or "self-signed" in refused, refused
        many = [f"{url}/{size}" for size in range(100)]
        assert run(*curl, "--parallel", "--no-progress-meter", *many).count("x") == sum(range(100))


def asks_clients_for_certificates(peer, place):
    with Listening(peer, "serve", f"{place}/own.pem", f"{place}/own.key", f"{place}/ca.pem") as server:
        assert "certificate required" in ask(server.port, place, give="GET /1 HTTP/1.0\n\n", expect=None)
        client_options = ["-cert", f"{place}/own.pem", "-key", f"{place}/own.key"]
        assert "200 OK" in ask(server.port, place, *client_options, give="GET /1 HTTP/1.0\n\n")


class Running:
    """A server that does not say when it listens."""

    def __init__(self, port, *command, **options):
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        **options)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except ConnectionRefusedError:
                assert self.process.poll() is None, self.process.stderr.read()
                time.sleep(0.05)
        raise AssertionError(f"{command[0]} does not listen")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def get(peer, place, port, host, path, *extra, expect=0):
    return run(peer, "get", str(port), host, f"{place}/ca.pem", path, *extra, expect=expect)


def asks_openssl(peer, place):
    (place / "page").write_text("a page" * 10_000)
    certificate = [f"{place}/own.pem", f"{place}/own.key"]
    server_options = ["-cert", certificate[0], "-key", certificate[1]]
    for version in ("-tls1_2", "-tls1_3"):
        port = free_port()
        server = ["openssl", "s_server", "-accept", f"127.0.0.1:{port}", *server_options, "-WWW",
                  "-alpn", "http/1.1", version]
        with Running(port, *server, cwd=place):
            output = get(peer, place, port, "example.test", "/page")
            sizes = re.findall(r"TLSv1\.[23] (new|resumed) http/1.1 (\d+)", output)
            assert [kind for kind, _ in sizes] == ["new", "resumed"], output
            assert all(int(size) > 60_000 for _, size in sizes), output
            assert "hostname mismatch" in get(peer, place, port, "other.test", "/page", expect=1)
    port = free_port()
    with Running(port, "openssl", "s_server", "-accept", f"127.0.0.1:{port}", *server_options, "-www",
                 "-Verify", "1", "-verify_return_error", "-CAfile", f"{place}/ca.pem"):
        assert "certificate required" in get(peer, place, port, "example.test", "/", expect=1)
        assert "TLSv1.3 new" in get(peer, place, port, "example.test", "/", *certificate)


def asks_nginx(peer, place, nginx):
    port = free_port()
    (place / "page.html").write_text("a page" * 10_000)
    (place / "nginx.conf").write_text(f"""
daemon off; pid {place}/pid; error_log stderr; worker_processes 1;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {place}/1; proxy_temp_path {place}/2;
  fastcgi_temp_path {place}/3; uwsgi_temp_path {place}/4; scgi_temp_path {place}/5;
  server {{
    listen 127.0.0.1:{port} ssl; root {place};
    ssl_certificate {place}/own.pem; ssl_certificate_key {place}/own.key; ssl_protocols TLSv1.2 TLSv1.3;
  }}
}}
""")
    with Running(port, nginx, "-p", str(place), "-c", f"{place}/nginx.conf", "-e", "stderr"):
        output = get(peer, place, port, "example.test", "/page.html")
        assert re.search(r"TLSv1.3 new http/1.1 60\d+\nTLSv1.3 resumed http/1.1 60\d+\n", output), output
        assert "hostname mismatch" in get(peer, place, port, "other.test", "/page.html", expect=1)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    peer = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        place.chmod(0o755)  # nginx's workers are somebody else
        make_certificates(place)
        serves_openssl(peer, place)
        serves_curl(peer, place)
        asks_clients_for_certificates(peer, place)
        asks_openssl(peer, place)
        if len(sys.argv) == 3:
            asks_nginx(peer, place, sys.argv[2])


if __name__ == "__main__":
    main()
