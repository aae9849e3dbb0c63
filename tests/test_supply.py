"""What CI installs is locked by hash, and the licences of all of it are listed."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import licences  # noqa: E402


def test_every_pinned_package_is_locked_at_the_same_version() -> None:
    pinned = re.findall(r"(?m)^([A-Za-z0-9._-]+)==(\S+)", (ROOT / "constraints.txt").read_text())
    locked = licences.locked()
    other = {name: (pin, locked.get(licences._name(name))) for name, pin in pinned}
    other = {name: pair for name, pair in other.items() if pair[0] != pair[1]}
    assert not other, f"constraints.txt and the lock differ, run .ci/lock: {other}"


def test_every_locked_package_has_a_hash() -> None:
    entries = re.split(r"(?m)^(?=\S+==)", "".join(lock.read_text() for lock in licences.LOCKS))
    bare = [entry.splitlines()[0] for entry in entries if "==" in entry and "--hash=sha256:" not in entry]
    assert not bare


def test_the_page_of_licences_has_every_locked_package_and_what_its_metadata_say() -> None:
    rows = dict(re.findall(r"(?m)^\| (\S+) \| (\S+ \| .+?) \| ?(?:\*run\*)? ?\|$", licences.PAGE.read_text("utf-8")))
    for name, locked in licences.locked().items():
        assert rows[name].startswith(f"{locked} | "), f"run scripts/licences.py: {name}"
        try:
            is_same = version(name).partition("+")[0] == locked
        except PackageNotFoundError:
            continue
        if is_same:
            assert rows[name] == f"{locked} | {licences.licence(name).replace('|', '/')}", (
                f"run scripts/licences.py: {name}"
            )


@pytest.mark.skipif(sys.platform == "win32", reason="make and bash")
def test_ci_installs_by_hash() -> None:
    words = ["make", "-n", "HASHED=1", "-W", "pyproject.toml", "-W", ".ci/requirements.lock", ".venv/.installed"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    installs = [line for line in done.stdout.splitlines() if "pip" in line and " install" in line]
    assert installs and all(
        "--require-hashes" in line or "--no-deps --no-build-isolation -e ." in line for line in installs
    )
