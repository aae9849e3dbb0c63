"""A command loads what it needs and no more: a person waits for every import."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "polars", "scipy", "numpy", "pydantic")


def loaded_by(*arguments: str) -> tuple[str, set[str]]:
    """What a command printed, and the top-level modules it loaded."""
    program = (
        "import sys\n"
        f"sys.argv = ['gamma', *{arguments!r}]\n"
        "from gamma_kg.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print('LOADED', *sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    shown, _, modules = done.stdout.rpartition("LOADED")
    return shown, set(modules.split())


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_load_no_heavy_module(option: str) -> None:
    shown, modules = loaded_by(option)
    assert "gamma" in shown
    assert not modules & set(HEAVY)


def test_an_answer_loads_neither_the_compiler_of_torch_nor_the_optimisers_of_scipy() -> None:
    shown, modules = loaded_by("predict", "demo", "--head", "Kenya", "--relation", "member of", "--json")
    assert "African Union" in shown or "probability" in shown
    assert "torch" in modules
    assert not modules & {"torch._dynamo", "scipy.optimize"}
