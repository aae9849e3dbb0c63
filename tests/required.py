"""On CI (GAMMA_REQUIRE_TESTS, set by .ci/run) a test that could run and was skipped is a failure.

A skip counts as due only where its reason is one of a few, and holds on this machine: what is said and what is so are
looked at apart, so that a broken fixture that takes everything for absent is found out.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Generator
from importlib.util import find_spec
from pathlib import Path

import pytest

REQUIRED = "GAMMA_REQUIRE_TESTS"
ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


def has_instructions(name: str) -> bool:
    """Whether the processor has an instruction set, asked of the system and not of our module."""
    if name == "neon":
        return platform.machine().lower() in ("aarch64", "arm64")
    cpuinfo = Path("/proc/cpuinfo")
    return cpuinfo.exists() and re.search(rf"\b{name}", cpuinfo.read_text()) is not None


def has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


# What may be skipped: the reason that the test gives, and whether it is so here.
DUE: tuple[tuple[str, Callable[[], bool]], ...] = (
    ("this machine or build has no avx512", lambda: not has_instructions("avx512f")),
    ("this machine or build has no avx2", lambda: not has_instructions("avx2")),
    ("this machine or build has no neon", lambda: not has_instructions("neon")),
    (r"needs \.\./shared|are not beside the project", lambda: not SHARED.is_dir()),
    ("there is a GPU here", has_gpu),
    ("pyspark is not installed", lambda: find_spec("pyspark") is None),
    ("Spark needs a Java", lambda: shutil.which("java") is None),
    ("make and bash", lambda: sys.platform == "win32"),
    ("cmake is not on the path", lambda: shutil.which("cmake") is None),
)


def must_run(reason: str) -> bool:
    """Whether a test with this reason to be skipped should have run here."""
    return not any(re.search(words, reason) and is_so() for words, is_so in DUE)


def refuse_undue_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turns a skip that is not due into a failure."""
    if not os.environ.get(REQUIRED) or report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    if must_run(reason):
        report.outcome = "failed"
        report.longrepr = f"{REQUIRED} is set, and this was not run: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    refuse_undue_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    refuse_undue_skip(report)
    return report
