"""On CI a skipped test is a failure, unless this machine lacks what it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import required

FILES = {
    "conftest.py": "from required import pytest_make_collect_report, pytest_runtest_makereport\n",
    "test_one.py": 'import pytest\ndef test_one():\n    pytest.skip("{reason}")\n',
    "test_file.py": 'import pytest\npytest.importorskip("no_such_module", reason="{reason}")\n',
    "test_other.py": "def test_passes():\n    pass\n",
}
UNDUE, NO_SPARK = "nobody wanted to", "pyspark is not installed"


@pytest.mark.parametrize(
    ("workers", "is_ci", "reason", "is_red"),
    [(0, "1", UNDUE, True), (1, "1", UNDUE, True), (0, "", UNDUE, False), (0, "1", NO_SPARK, NO_SPARK)],
)
def test_what_must_run_and_was_skipped_fails(
    tmp_path: Path, workers: int, is_ci: str, reason: str, is_red: bool | str
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text.format(reason=reason))
    environment = os.environ | {required.REQUIRED: is_ci, "PYTHONPATH": str(required.ROOT / "tests")}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(workers)]
    done = subprocess.run(
        [*words, "--continue-on-collection-errors"], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    is_red = required.must_run(is_red) if isinstance(is_red, str) else is_red
    assert (done.returncode != 0) == is_red, done.stdout
    told = [line for line in done.stdout.splitlines() if line.startswith(required.REQUIRED)]
    assert len(told) == 2 * is_red, done.stdout  # the test, and the file that never came to its tests


def test_a_reason_must_be_true_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reason = "needs ../shared (benchmark graphs and golden scores), which is not here"
    monkeypatch.setattr(required, "SHARED", tmp_path)
    assert required.must_run(reason)
    monkeypatch.setattr(required, "SHARED", tmp_path / "gone")
    assert not required.must_run(reason)
    assert required.must_run("the native module is not built here")
