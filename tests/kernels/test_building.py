"""An installation without the native engine is somebody's choice, never an accident: it would be 140 times slower."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def configured(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What CMake says of a build before anything is compiled, as pip has it say."""
    if (cmake := shutil.which("cmake")) is None:
        pytest.skip("cmake is not on the path")
    without = {name: value for name, value in os.environ.items() if not name.startswith("GAMMA_")}
    command = [cmake, "-S", str(ROOT), "-B", str(folder)]
    done = subprocess.run(command, env=without | environment, capture_output=True, text=True, timeout=120)
    done.stderr = " ".join(done.stderr.split())
    return done


def test_no_compiler_is_an_error_that_says_how_to_go_without(tmp_path: Path) -> None:
    done = configured(tmp_path, CXX="/nowhere/c++")
    assert done.returncode
    assert "No C++ compiler was found" in done.stderr
    assert "GAMMA_NATIVE=off pip install ." in done.stderr


def test_going_without_is_chosen_and_said(tmp_path: Path) -> None:
    done = configured(tmp_path, CXX="/nowhere/c++", GAMMA_NATIVE="off")
    assert not done.returncode
    assert "installed without its native engine" in done.stderr


def test_a_misspelt_choice_is_refused(tmp_path: Path) -> None:
    done = configured(tmp_path, GAMMA_NATIVE="of")
    assert done.returncode
    assert "wanted required or off, got of" in done.stderr


def test_every_wheel_is_built_with_the_engine_and_asked_for_it() -> None:
    wheels = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    for system in ("linux", "macos", "windows"):
        # An environment of a system's own takes the place of the common one.
        own = {**wheels, **wheels[system]}
        assert own["environment"]["GAMMA_NATIVE"] == "required"
        assert "GAMMA_REQUIRE_NATIVE" in own["test-command"]
