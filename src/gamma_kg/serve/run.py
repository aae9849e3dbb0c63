"""Running the app: uvicorn on one address, and an end in good order.

SIGTERM (or Ctrl-C): no new connections, streams end, requests that run are answered, a running job gets a while.
"""

from __future__ import annotations

import gc
import socket
from types import FrameType

import uvicorn
from fastapi import FastAPI

from gamma_kg.errors import ConfigError
from gamma_kg.serve.service import Service

BACKLOG = 2048  # callers that may knock before they are let in


class GracefulServer(uvicorn.Server):
    """Tells the service when the end begins, so that streams which would go on for ever end too."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._service.announce_stop()
        # A second signal means now. An end that was asked for is a success: the signal is not raised again afterwards.
        self.force_exit, self.should_exit = self.should_exit, True


def listen(host: str, port: int) -> socket.socket:
    """Takes the address before anything is loaded, so that a taken port is known at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio switches Nagle's waiting off for TCP that says so, and for no other: without
    # it an answer of two writes waits 40 ms for the caller to acknowledge the first.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigError(f"can't listen at {host} port {port}: {error.strerror or error}; try --port 0") from error
    return listener


def run(app: FastAPI, service: Service, listener: socket.socket) -> None:
    """Serves until a signal ends it."""
    # What is loaded by now stays: to look through all of it for garbage again and again, libraries included, took two
    # fifths of the time of a small request.
    gc.collect()
    gc.freeze()
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=int(service.limits.seconds) + 1,
    )
    GracefulServer(config, service).run(sockets=[listener])
