"""A server on loopback that gives the files of a set slowly, so that a download can be stopped in the middle."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SLUG = "yago310"
BYTES_A_SECOND = 400_000
PIECE = 8_192


def files() -> dict[str, bytes]:
    """The set as it lies at its origin: the same in every process."""
    train = "".join(f"entity {i}\tnext\tentity {(7 * i + 1) % 20_000}\n" for i in range(20_000))
    few = {name: "".join(f"entity {i}\tnext\tentity {i}\n" for i in range(k, k + 20)) for k, name in enumerate(OTHERS)}
    return {"train.txt": train.encode(), **{name: text.encode() for name, text in few.items()}}


OTHERS = ("valid.txt", "test.txt")


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        content, wanted = FILES.get(self.path.lstrip("/")), self.headers.get("Range")
        if content is None:
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        try:
            for at in range(start, len(content), PIECE):
                self.wfile.write(content[at : at + PIECE])
                time.sleep(PIECE / BYTES_A_SECOND)
        except OSError:
            return  # the caller was killed

    def log_message(self, *args: object) -> None:
        pass


FILES = files()


@contextmanager
def slow_server() -> Iterator[str]:
    """The address of the server, which ends with the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
