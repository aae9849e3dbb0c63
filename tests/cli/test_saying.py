"""What is said for now, where a person looks on, leaves nothing behind."""

import io
import sys

import pytest

from gamma_kg.cli import saying


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_is_said_for_now_is_taken_back_before_the_next_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    saying.say_for_now("reading a\x1b[2Jgraph" + 200 * "!")
    line = terminal.getvalue()
    assert line.startswith("gamma: reading a") and line.endswith("\r") and len(line) <= 80 and "\x1b" not in line
    saying.say("9 facts")
    saying.unsay()
    assert terminal.getvalue() == f"{line}{saying.CLEAR_LINE}gamma: 9 facts\n"


def test_nothing_is_said_for_now_where_nobody_looks_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    saying.say_for_now("reading a graph")
    saying.unsay()
    assert stream.getvalue() == ""
