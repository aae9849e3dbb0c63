"""Which path runs, what can force it, and what the border refuses."""

from __future__ import annotations

import os
import subprocess
import sys

import torch

from gamma_kg.kernels import native
from gamma_kg.kernels.native.loading import LARGE_BYTES, PAGE_BYTES, empty_states
from gamma_kg.kernels.native.propagation import supports

TELL = "from gamma_kg.kernels.native import describe; print(describe())"


def told_with(isa: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"GAMMA_ISA": isa}
    return subprocess.run([sys.executable, "-c", TELL], env=environment, capture_output=True, text=True, check=False)


def test_none_means_the_torch_path() -> None:
    assert told_with("none").stdout.startswith("plain torch")


def test_plain_runs_everywhere() -> None:
    assert told_with("plain").stdout.startswith("native, plain")


def test_an_unknown_instruction_set_is_refused_with_what_there_is() -> None:
    result = told_with("avx9000")
    assert result.returncode != 0
    assert "GAMMA_ISA=avx9000 can't run here; this machine has" in result.stderr


def test_description_names_the_instruction_set() -> None:
    module = native.module()
    assert module is not None
    assert module.isa() in native.describe()


def test_other_devices_types_and_formulas_take_the_plain_path() -> None:
    x = torch.zeros(1, 2, 4)
    assert supports(x, x, "complex")
    assert not supports(x.half(), x.half(), "complex")
    assert not supports(x, x.double(), "complex")
    assert not supports(x, x, "mobius")
    assert not supports(x.to("meta"), x.to("meta"), "complex")


def test_large_states_can_be_written() -> None:
    states = empty_states(torch.zeros(1), 1, LARGE_BYTES // 64, 32)
    assert states.fill_(2.0).sum() == 2.0 * states.numel()
    assert states.data_ptr() % PAGE_BYTES == 0
