"""The new user of the pages, with servers on loopback in place of the network."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from new_user import NewUser
from stand_ins import FILMS
from tiny_sets import write_sets

from bolt import BoltServer
from loopback import Endpoint, FileServer, serving


@pytest.fixture(scope="session")
def tiny_sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    write_sets(folder)
    return folder


@pytest.fixture
def new_user(tiny_sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NewUser]:
    on_stop = signal.getsignal(signal.SIGTERM)
    with ExitStack() as servers:
        files = FileServer()
        servers.enter_context(serving(files))

        def endpoint(turtle: str) -> Endpoint:
            server = Endpoint(turtle)
            servers.enter_context(serving(server))
            return server

        def database() -> str:
            server = BoltServer()
            servers.enter_context(serving(server))
            for head, kind, tail in FILMS:
                for name in (head, tail):
                    server.nodes.setdefault(f"4:{name}", (["Thing"], {"name": name}))
                server.relationships[f"5:{len(server.relationships)}"] = (f"4:{head}", kind, f"4:{tail}")
            return server.url

        yield NewUser(tmp_path, tiny_sets, files, endpoint, database, monkeypatch)
    signal.signal(signal.SIGTERM, on_stop)
