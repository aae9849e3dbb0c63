"""A stand-in for Neo4j on loopback: speaks Bolt 5.4 (handshake, chunks, PackStream) to the official driver.

It does not understand Cypher: it knows the two queries that we send, by their words, and answers them from lists of
nodes and relationships. So what is tested is our use of the driver and the wire, not Neo4j.
"""

from __future__ import annotations

import socketserver
import struct
import sys
from typing import Any

HELLO, LOGON, GOODBYE, RESET, RUN, PULL, BEGIN, COMMIT, ROLLBACK, TELEMETRY = (
    0x01, 0x6A, 0x02, 0x0F, 0x10, 0x3F, 0x11, 0x12, 0x13, 0x54,
)  # fmt: skip
SUCCESS, RECORD, FAILURE = 0x70, 0x71, 0x7F


class BoltServer(socketserver.ThreadingTCPServer):
    """Nodes are {id: (labels, properties)}, relationships {id: (head, type, tail)}."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that gave up has closed its end: nothing to tell."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.nodes: dict[str, tuple[list[str], dict[str, Any]]] = {}
        self.relationships: dict[str, tuple[str, str, str]] = {}
        self.password = "secret"
        self.queries: list[tuple[str, dict[str, Any]]] = []

    @property
    def server_port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"bolt://neo4j:{self.password}@127.0.0.1:{self.server_port}/neo4j"

    def answer(self, query: str, parameters: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
        self.queries.append((query, parameters))
        if "MERGE" in query:
            kind = query.split("[r:`")[1].split("`]")[0].replace("``", "`")
            written = 0
            for row in parameters["rows"]:
                if row["head"] in self.nodes and row["tail"] in self.nodes:
                    fact = (row["head"], kind, row["tail"])
                    if fact not in self.relationships.values():
                        self.relationships[f"5:x:{len(self.relationships):06d}"] = fact
                    written += 1
            return ["written"], [[written]]
        after, rows = parameters["after"], []
        for key, (head, kind, tail) in sorted(self.relationships.items()):
            if after is None or key > after:
                ends = [[end, self.nodes[end][1], self.nodes[end][0]] for end in (head, tail)]
                rows.append([key, kind, *ends[0], *ends[1]])
        fields = "id relation head head_names head_labels tail tail_names tail_labels".split()
        return fields, rows[: parameters["size"]]


class _Handler(socketserver.BaseRequestHandler):
    server: BoltServer

    def handle(self) -> None:
        assert self._exactly(4) == b"\x60\x60\xb0\x17"
        self._exactly(16)
        self.request.sendall(b"\x00\x00\x04\x05")
        rows: list[list[Any]] = []
        while (message := self._message()) is not None:
            tag, fields = message
            if tag == GOODBYE:
                return
            if tag == LOGON and fields[0].get("credentials") != self.server.password:
                self._send(FAILURE, {"code": "Neo.ClientError.Security.Unauthorized", "message": "wrong password"})
            elif tag == HELLO:
                self._send(SUCCESS, {"server": "Neo4j/5.4.0", "connection_id": "bolt-1"})
            elif tag == RUN:
                names, rows = self.server.answer(fields[0], fields[1])
                self._send(SUCCESS, {"fields": names, "t_first": 0})
            elif tag == PULL:
                for row in rows:
                    self._send(RECORD, row)
                self._send(SUCCESS, {"type": "rw", "t_last": 0, "db": "neo4j"})
            else:
                self._send(SUCCESS, {})

    def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            block = self.request.recv(size - len(found))
            if not block:
                raise ConnectionError
            found += block
        return found

    def _message(self) -> tuple[int, list[Any]] | None:
        body = b""
        try:
            while True:
                (size,) = struct.unpack(">H", self._exactly(2))
                if size == 0 and body:
                    break
                body += self._exactly(size)
        except ConnectionError:
            return None
        reader = _Unpacker(body)
        return reader.structure()

    def _send(self, tag: int, field: Any) -> None:
        body = bytes([0xB1, tag]) + packed(field)
        for start in range(0, len(body), 0xFFFF):
            part = body[start : start + 0xFFFF]
            self.request.sendall(struct.pack(">H", len(part)) + part)
        self.request.sendall(b"\x00\x00")


def packed(value: Any) -> bytes:
    """A value as PackStream."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return b"\xcb" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\xc1" + struct.pack(">d", value)
    if isinstance(value, str):
        text = value.encode()
        return b"\xd2" + struct.pack(">I", len(text)) + text
    if isinstance(value, list):
        return b"\xd6" + struct.pack(">I", len(value)) + b"".join(map(packed, value))
    items = b"".join(packed(key) + packed(item) for key, item in value.items())
    return b"\xda" + struct.pack(">I", len(value)) + items


class _Unpacker:
    def __init__(self, body: bytes) -> None:
        self.body, self.at = body, 0

    def structure(self) -> tuple[int, list[Any]]:
        count = self._take(1)[0] & 0x0F
        tag = self._take(1)[0]
        return tag, [self.value() for _ in range(count)]

    def value(self) -> Any:
        mark = self._take(1)[0]
        if mark < 0x80 or mark >= 0xF0:
            return struct.unpack(">b", bytes([mark]))[0]
        if mark in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[mark]
        if mark == 0xC1:
            return struct.unpack(">d", self._take(8))[0]
        if 0xC8 <= mark <= 0xCB:
            size = 1 << (mark - 0xC8)
            return int.from_bytes(self._take(size), "big", signed=True)
        for small, large, build in ((0x80, 0xD0, self._text), (0x90, 0xD4, self._list), (0xA0, 0xD8, self._map)):
            if mark & 0xF0 == small:
                return build(mark & 0x0F)
            if large <= mark < large + 3:
                return build(int.from_bytes(self._take(1 << (mark - large)), "big"))
        raise AssertionError(f"mark {mark:#x}")

    def _text(self, size: int) -> str:
        return self._take(size).decode()

    def _list(self, size: int) -> list[Any]:
        return [self.value() for _ in range(size)]

    def _map(self, size: int) -> dict[str, Any]:
        return {self.value(): self.value() for _ in range(size)}

    def _take(self, size: int) -> bytes:
        self.at += size
        return self.body[self.at - size : self.at]
