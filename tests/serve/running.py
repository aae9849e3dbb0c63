"""The server in a thread of its own, at a free port, for tests that come over the network."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from gamma_kg.serve.app import create_app
from gamma_kg.serve.run import listen
from gamma_kg.serve.service import Service


@contextmanager
def running(service: Service, token: str | None = None) -> Iterator[str]:
    """The address of the server; it ends with the block and closes the service."""
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        create_app(service, token=token), log_config=None, access_log=False, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        service.announce_stop()
        server.should_exit = True
        thread.join()
