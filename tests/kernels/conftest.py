"""Kernel tests need the native module; where it was not built they say so and are skipped."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from gamma_kg.kernels import native

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def needs_native() -> None:
    if native.module() is None:
        pytest.skip("the native module is not built here")


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)
