"""A full disk, a read-only place, too little memory: one line and exit code 2, wherever it happened."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from gamma_kg import cli

SHORTAGES = [
    (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/x/log.jsonl"), "No space left on device /x/log.jsonl"),
    (OSError(errno.EROFS, os.strerror(errno.EROFS)), "Read-only file system"),
    (MemoryError(), "not enough memory"),
    (
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        "memory",
    ),
    (ImportError("x.so: failed to map segment from shared object"), "not enough memory"),
]


@pytest.mark.parametrize(("error", "words"), SHORTAGES, ids=lambda found: type(found).__name__)
def test_a_shortage_is_one_line(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    said = capsys.readouterr().err
    assert stopped.value.code == 2 and words in said and said.count("\n") == 1


def test_an_error_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        cli.main()


def test_a_limit_under_which_torch_would_abort_is_told_before_it_is_loaded() -> None:
    program = (
        "import resource as r; r.setrlimit(r.RLIMIT_AS, (900 << 20,) * 2); from gamma_kg.__main__ import main; main()"
    )
    for words, code in ((["predict", "demo"], 2), (["--version"], 0)):
        done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert ("address space is limited to 900 MB" in done.stderr) == (code == 2) and done.stderr.count(
            "\n"
        ) == code // 2
