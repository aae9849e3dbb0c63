"""What starts commands, with a server beside it that files can be fetched from: one of each in a process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from campaign.slow_server import slow_server
from campaign.zygote import Zygote


@contextmanager
def commands() -> Iterator[Zygote]:
    """The zygote of this process; inside of another such block that same one."""
    if _open:
        yield _open[0]
        return
    with slow_server() as address:
        os.environ["GAMMA_FAULTS_SERVER"] = address
        _open.append(Zygote())
        try:
            yield _open[0]
        finally:
            _open.pop().close()
            del os.environ["GAMMA_FAULTS_SERVER"]


_open: list[Zygote] = []
