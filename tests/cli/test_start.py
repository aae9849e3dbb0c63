"""A command loads what it needs and no more: a person waits for every import."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "polars", "scipy", "numpy", "pydantic")


# A step of training, on the smallest model there is.
STEP = """
import torch
from gamma_kg.training.optimizer import adamw
weight = torch.nn.Parameter(torch.ones(2))
optimizer = adamw([weight], 0.1, 0.01)
weight.sum().backward()
optimizer.step()
optimizer.zero_grad()
optimizer.load_state_dict(optimizer.state_dict())
"""


def loaded_by(*arguments: str, then: str = "") -> tuple[str, set[str]]:
    """What a command printed, and the modules that it, and what was done after it, loaded."""
    program = (
        "import sys\n"
        f"sys.argv = ['gamma', *{arguments!r}]\n"
        "from gamma_kg.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        f"{then}\nprint('LOADED', *sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    shown, _, modules = done.stdout.rpartition("LOADED")
    return shown, set(modules.split())


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_load_no_heavy_module(option: str) -> None:
    shown, modules = loaded_by(option)
    assert "gamma" in shown
    assert not modules & set(HEAVY)


def test_answers_and_training_load_neither_the_compiler_of_torch_nor_the_optimisers_of_scipy() -> None:
    shown, modules = loaded_by("predict", "demo", "--head", "Kenya", "--relation", "member of", "--json", then=STEP)
    assert "African Union" in shown or "probability" in shown
    assert "torch" in modules
    assert not modules & {"torch._dynamo", "scipy.optimize"}


def test_importing_the_package_loads_nothing_else() -> None:
    """Until the first line of `__main__` Ctrl-C would be a traceback: that time must be next to nothing."""
    # What finds the package where it is installed for developing is loaded before: it is none of our doing.
    finder = "import sys, collections, contextlib, importlib.machinery, importlib.util, operator, reprlib, warnings"
    program = f"{finder}; before = {{*sys.modules}}; import gamma_kg; print(*({{*sys.modules}} - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"gamma_kg"}
