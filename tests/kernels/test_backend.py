"""Who computes is decided once, and a missing engine is told aloud."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch
from odd_graphs import GRAPHS

from gamma_kg.errors import ConfigError
from gamma_kg.kernels import Backend, backend_of
from gamma_kg.kernels.backend import plain_torch
from gamma_kg.kernels.native import loading
from gamma_kg.kernels.native.backend import NativeBackend

CPU = torch.device("cpu")


@pytest.fixture
def fresh() -> Iterator[None]:
    """The module is looked for anew, here and afterwards."""
    loading.module.cache_clear()
    yield
    loading.module.cache_clear()


def fails_with(error: ImportError, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> object:
        raise error

    monkeypatch.setattr(importlib, "import_module", load)


def test_the_cpu_has_one_backend_and_it_is_the_native_one() -> None:
    assert type(backend_of(CPU)) is NativeBackend
    assert backend_of(CPU) is backend_of(torch.device("cpu", 0))


def test_other_devices_have_plain_torch() -> None:
    assert type(backend_of(torch.device("meta"))) is Backend
    assert backend_of(torch.device("meta")) is not backend_of(CPU)


def test_plain_torch_can_be_asked_for_for_a_while() -> None:
    before = backend_of(CPU)
    with pytest.raises(ZeroDivisionError), plain_torch() as plain:
        assert backend_of(CPU) is plain and type(plain) is Backend
        raise ZeroDivisionError
    assert backend_of(CPU) is before


def test_edges_are_sent_to_a_device_once() -> None:
    backend, edges = Backend(torch.device("meta")), GRAPHS["ordinary"]
    there = backend.upload(edges)
    assert there.device.type == "meta" and backend.upload(edges) is there
    assert backend.prepare(edges) is backend.prepare(edges)
    assert backend.prepare(edges).neighbour is there.neighbour
    assert Backend(CPU).upload(edges) is edges


def test_an_engine_that_was_not_built_is_told_with_what_it_costs(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GAMMA_REQUIRE_NATIVE", raising=False)
    fails_with(ModuleNotFoundError("No module named 'gamma_kg._native'", name="gamma_kg._native"), monkeypatch)
    with pytest.warns(RuntimeWarning, match="hundred times slower; it was not built: install gamma-kg with a C.. comp"):
        assert loading.module() is None
    assert loading.module() is None  # and told once: a second warning would be an error here


def test_an_engine_that_is_broken_is_told_with_the_reason(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GAMMA_REQUIRE_NATIVE", raising=False)
    fails_with(ImportError("undefined symbol: omp_get_thread_num"), monkeypatch)
    with pytest.warns(RuntimeWarning, match="can't be loaded .undefined symbol: omp_get_thread_num.: install gamma-kg"):
        assert loading.module() is None


def test_where_the_engine_is_required_its_absence_is_an_error(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_with(ImportError("undefined symbol"), monkeypatch)
    monkeypatch.setenv("GAMMA_REQUIRE_NATIVE", "1")
    with pytest.raises(ConfigError, match="GAMMA_REQUIRE_NATIVE is set, and the native engine of gamma is missing"):
        loading.module()


def test_switching_the_engine_off_is_silent() -> None:
    program = (
        "import warnings; warnings.simplefilter('error')\nfrom gamma_kg.kernels import native; print(native.module())"
    )
    environment = os.environ | {"GAMMA_ISA": "none", "GAMMA_REQUIRE_NATIVE": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "None"
