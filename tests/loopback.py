"""Servers on loopback, for what would come from the network: files to download, and a SPARQL endpoint."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseServer
from urllib.parse import parse_qs

import pyoxigraph as ox


@contextmanager
def serving(server: BaseServer) -> Iterator[None]:
    """Answers requests until the block ends."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class FileServer(ThreadingHTTPServer):
    """Serves `files`, honours ranges, and can hang up after a number of bytes."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _FileHandler)
        self.files: dict[str, bytes] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.hang_up_after: int | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _FileHandler(BaseHTTPRequestHandler):
    server: FileServer

    def do_GET(self) -> None:
        name, wanted = self.path.lstrip("/"), self.headers.get("Range")
        self.server.requests.append((name, wanted))
        if name not in self.server.files:
            self.send_error(404)
            return
        body = self.server.files[name]
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self.wfile.write(body[start:][: self.server.hang_up_after])

    def log_message(self, *args: object) -> None:
        pass


class Endpoint(ThreadingHTTPServer):
    """Answers SPARQL queries from pyoxigraph's store; `failures` requests fail first, a silent one never answers."""

    daemon_threads = True

    def __init__(self, turtle: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _SparqlHandler)
        self.store = ox.Store()
        self.store.load(turtle, format=ox.RdfFormat.TURTLE)
        self.failures = 0
        self.body: bytes | None = None
        self.bodies: list[bytes] = []
        self.never = threading.Event()
        self.is_silent = False
        self.drips = False
        self.redirect: str | None = None
        self.requests = 0

    @property
    def url(self) -> str:
        return f"sparql:http://127.0.0.1:{self.server_port}/query"


class _SparqlHandler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        server = self.server
        server.requests += 1
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        if "update" in form:
            server.store.update(form["update"][0])
            self.send_response(204)
            self.end_headers()
            return
        query = form["query"][0]
        if server.is_silent:
            server.never.wait(5)
            return
        if server.redirect is not None:
            self.send_response(302)
            self.send_header("Location", server.redirect)
            self.end_headers()
            return
        if server.drips:
            self.send_response(200)
            self.end_headers()
            while not server.never.wait(0.02):
                self.wfile.write(b" ")
                self.wfile.flush()
            return
        if server.failures:
            server.failures -= 1
            self.send_error(503)
            return
        if server.bodies:
            server.body = server.bodies.pop(0)
        body = server.body or server.store.query(query).serialize(format=ox.QueryResultsFormat.JSON)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass
