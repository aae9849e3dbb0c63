"""What GAMMA asks may answer anything: addresses in JSON-LD, SPARQL endpoints, Neo4j databases."""

from __future__ import annotations

import importlib.util
import json
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from campaign.lines import Line, NotHereError
from campaign.refusing import refused
from campaign.zygote import Zygote


@contextmanager
def _answering(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[tuple[str, list[str]]]:
    """A server on loopback that answers every request by the function; and the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                answer(self)
            except OSError:
                return

        do_POST = do_GET

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def contexts(line: Line, folder: Path, zygote: Zygote) -> None:
    def context(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b'{"@context": {"p": "http://e.org/p"}}')

    with _answering(context) as (address, asked):
        for number, text in enumerate(
            (
                json.dumps(f"{address}/c.jsonld"),
                json.dumps({"@import": f"{address}/c"}),
                json.dumps([{}, f"{address}/c"]),
                json.dumps({"p": {"@id": "http://e.org/p", "@context": f"{address}/c"}}),
            )
        ):
            node = '"@id": "http://e.org/a", "p": {"@id": "http://e.org/b"}'
            (folder / f"f{number}.jsonld").write_text(f'{{"@context": {text}, {node}}}')
            words = ["index", f"f{number}.jsonld", "--out", "g.gamma"]
            refused(line, f"context {text[:40]}", words, folder, zygote)
            line.expect(not asked, f"the network was asked for {asked}")


def endpoints(line: Line, folder: Path, zygote: Zygote) -> None:
    def page(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b" ")
            time.sleep(0.05)

    def flood(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b" " * (1 << 20))

    def redirect(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", "http://169.254.169.254/secret")
        handler.end_headers()

    row = '{"s":{"type":"uri","value":"x:a"},"p":{"type":"uri","value":"x:p"},"o":{"type":"uri","value":"x:b"}}'
    table = f'{{"head":{{"vars":["s","p","o"]}},"results":{{"bindings":[{row}]}}}}'.encode()

    def drip_header(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            handler.wfile.write(b"a")
            time.sleep(0.05)

    def about_to(handler: BaseHTTPRequestHandler) -> None:
        while True:
            handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            time.sleep(0.05)

    turns = iter(range(10**9))
    part = b'{"head":{"vars":["s","p","o"]},"results":{"bindings":[{"s":{"type":"uri","value":"x:a"}}]}}'
    attacks: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {
        "drips a header": drip_header,
        "is always about to answer": about_to,
        "shows pages round and round": lambda h: page(h, table.replace(b"x:b", b"x:%d" % (next(turns) % 3))),
        "leaves parts of rows out": lambda handler: page(handler, part),
        "has literals for relations": lambda h: page(
            h, table.replace(b'"uri","value":"x:p"', b'"literal","value":"p"')
        ),
        "redirects to no address": lambda handler: (
            handler.wfile.write(b"HTTP/1.1 302 x\r\nLocation: http://[\r\n\r\n") and None
        ),
        "answers noise": lambda handler: handler.wfile.write(bytes(range(256)) * 40) and None,
        "hangs": lambda handler: time.sleep(30),
        "drips for ever": drip,
        "floods": flood,
        "redirects elsewhere": redirect,
        "never ends": lambda handler: page(handler, table),
        "is a page": lambda handler: page(handler, b"<html><script>alert(1)</script></html>"),
        "hangs up": lambda handler: handler.connection.close(),
        "nests deeply": lambda handler: page(handler, b"[" * 1_000_000),
    }
    for name, answer in attacks.items():
        with _answering(answer) as (address, _):
            words = ["index", f"sparql:{address}/query", "--out", "g.gamma", "--timeout", "2"]
            refused(line, f"an endpoint that {name}", words, folder, zygote)


def databases(line: Line, folder: Path, zygote: Zygote) -> None:
    """What speaks Bolt and answers nonsense, or nothing; and what does not speak it at all."""
    if importlib.util.find_spec("neo4j") is None:
        raise NotHereError("the driver of Neo4j is not installed")
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
    from bolt import BoltServer

    fields = "id relation head head_names head_labels tail tail_names tail_labels".split()
    good = ["5:x:1", "R", "4:x:1", {"name": "a"}, ["L"], "4:x:2", {"name": "b"}, ["L"]]

    class Database(BoltServer):
        rows: Callable[[int], list[list[object]]]

        def answer(self, query: str, parameters: dict[str, object]) -> tuple[list[str], list[list[object]]]:
            self.queries.append((query, parameters))
            return fields, self.rows(len(self.queries))

    def changed(column: int, value: object) -> Callable[[int], list[list[object]]]:
        return lambda asked: [[*good[:column], value, *good[column + 1 :]]]

    attacks: dict[str, Callable[[int], list[list[object]]]] = {
        f"has {value!r} for {fields[column]}": changed(column, value) for column, value in WRONG_CELLS
    }
    attacks["falls silent"] = lambda asked: time.sleep(20) or []
    attacks["shows pages round and round"] = lambda asked: [[f"5:x:{asked % 3}-{i}", *good[1:]] for i in range(10_000)]
    for name, rows in attacks.items():
        server = Database()
        server.rows = rows
        with _served(server):
            words = ["index", server.url, "--out", "g.gamma", "--timeout", "3"]
            refused(line, f"a database that {name}", words, folder, zygote)
    noises: dict[str, bytes] = {
        "says nothing": b"", "speaks HTTP": b"HTTP/1.1 200 OK\r\n\r\n", "nests deeply": SHAKEN + NESTED,
        "makes noise": NOISE,
    }  # fmt: skip
    for name, said in noises.items():

        class Noise(socketserver.BaseRequestHandler):
            words = said

            def handle(self) -> None:
                self.request.recv(64)
                self.request.sendall(self.words)
                time.sleep(5)

        noise = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Noise)
        noise.daemon_threads, noise.block_on_close = True, False
        with _served(noise):
            words = ["index", f"bolt://127.0.0.1:{noise.server_address[1]}", "--out", "g.gamma", "--timeout", "3"]
            refused(line, f"a database that {name}", words, folder, zygote)


WRONG_CELLS = ((0, None), (1, 7), (1, None), (2, 3.5), (3, ["x"]), (4, None), (4, [1]), (5, []), (6, "x"))
# Bolt: the version that the server chose; a message that is a list in a list in a list.
SHAKEN, NESTED = b"\x00\x00\x04\x05", b"\xff\xf0\xb1\x70" + b"\x91" * 0xFFEE + b"\x00\x00"
NOISE = bytes(range(256)) * 40


@contextmanager
def _served(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
