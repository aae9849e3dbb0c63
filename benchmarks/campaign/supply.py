"""What GAMMA is built from and what it ships: the lock, the licences, an archive that builds, a wheel that repeats."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from campaign.lines import Effort, Line, NotHereError
from campaign.setting import Attempt, Setting

ROOT = Path(__file__).resolve().parents[2]
INDEX = "https://pypi.org/pypi"
# Tests that need nothing but the package and what lies in the archive.
PYTEST = ("-p", "no:cacheprovider")
TESTED = ("tests/io", "tests/graph", "tests/nn", "tests/kernels/test_propagate.py", "tests/kernels/test_native.py")


def supply(effort: Effort) -> dict[str, Attempt]:
    quick: dict[str, Attempt] = {"every package is locked by hash": _locked, "licences are listed": _licences}
    slow: dict[str, Attempt] = {
        "two wheels are the same": _same_wheels, "tests of the source archive": _archive_tested,
        "no known weakness": _audited,
    }  # fmt: skip
    return {f"supply: {name}": attempt for name, attempt in (quick if effort.is_short else slow | quick).items()}


def _licences(line: Line, setting: Setting) -> None:
    words = [sys.executable, str(ROOT / "scripts" / "licences.py"), "--check"]
    done = subprocess.run(words, capture_output=True, text=True)
    line.expect(done.returncode == 0, done.stderr.strip())


def _lock() -> dict[str, tuple[str, str]]:
    """Name of each locked package → its version and hashes."""
    lock = (ROOT / ".ci" / "requirements.lock").read_text() + (ROOT / ".ci" / "torch.lock").read_text()
    entry = r"(?m)^(\S+)==(\S+)((?:[ \\\n]+--hash=sha256:[0-9a-f]{64})*)"
    return {_name(name): (version, hashes) for name, version, hashes in re.findall(entry, lock)}


def _audited(line: Line, setting: Setting) -> None:
    """What the package index knows of the locked versions: of each version, or (a mirror) of the latest one only."""
    locked, unknown = {name: version.partition("+")[0] for name, (version, _) in _lock().items()}, 0  # torch has +cpu
    with ThreadPoolExecutor(8) as pool:
        for (name, version), told in zip(locked.items(), pool.map(_known, locked.items()), strict=True):
            if told is None or told["info"]["version"] != version:
                unknown += 1
                continue
            weak = [found["id"] for found in told.get("vulnerabilities") or [] if not found.get("withdrawn")]
            line.expect(not weak, f"{name} {version}: {', '.join(weak)}")
    if not line.tried:
        raise NotHereError(f"{INDEX} tells of no locked version")
    if unknown:
        line.remark = f"of {len(locked)} packages, {unknown} are not at the only version that this index tells of"


def _known(package: tuple[str, str]) -> dict[str, Any] | None:
    name, version = package
    return _asked(f"{INDEX}/{name}/{version}/json") or _asked(f"{INDEX}/{name}/json")


def _asked(url: str) -> dict[str, Any] | None:
    """What the index says; None where it knows nothing of it."""
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return dict(json.load(answer))
    except (urllib.error.HTTPError, ValueError):
        return None
    except OSError as error:
        raise NotHereError(f"{INDEX} can't be reached ({error})") from error


def _locked(line: Line, setting: Setting) -> None:
    locked = _lock()
    for text in (ROOT / "constraints.txt").read_text().splitlines():
        if "==" in text and not text.startswith("#"):
            name, _, version = text.strip().partition("==")
            found = locked.get(_name(name))
            line.expect(
                found is not None and found[0] == version and "sha256" in found[1], f"{text}: locked as {found}"
            )
    for name, (version, hashes) in locked.items():
        line.expect("sha256:" in hashes, f"{name} {version} has no hash")


def _name(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def _same_wheels(line: Line, setting: Setting) -> None:
    """The source archive, unpacked in two places with other names, gives the same wheel twice."""
    wheels = [_built(setting.shared, place).read_bytes() for place in ("one", "another-place")]
    line.expect(wheels[0] == wheels[1], "the wheels differ")


def _archive_tested(line: Line, setting: Setting) -> None:
    """The tests in the archive pass with the package that was built from it."""
    wheel, target = _built(setting.shared, "one"), setting.folder / "installed"
    shutil.unpack_archive(wheel, target, "zip")
    # Without site (-S): the editable installation of this Python would take the place of what PYTHONPATH says.
    paths = os.pathsep.join([str(target), *sys.path])
    program = f"import sys, pytest, gamma_kg; print(gamma_kg.__file__); sys.exit(pytest.main({[*PYTEST, *TESTED]!r}))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=_unpacked(setting.shared, "one"), text=True, capture_output=True,
        env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    passed, found = re.search(r"(\d+) passed", done.stdout), done.stdout.partition("\n")[0]
    line.tried = int(passed[1]) if passed else 0
    line.expect(line.tried > 0, f"no test was run: {done.stdout[-300:]} {done.stderr[-300:]}")
    line.expect(done.returncode == 0, f"exit code {done.returncode}: {done.stdout[-500:]}")
    line.expect(found.startswith(str(target)), f"what was tested is {found}")


def _built(shared: Path, name: str) -> Path:
    """The wheel built from the archive in the folder of this name; built once."""
    out = shared / f"{name}-wheel"
    if not out.exists():
        _build("--wheel", _unpacked(shared, name), out)
    return next(out.glob("*.whl"))


def _unpacked(shared: Path, name: str) -> Path:
    """The sources in the archive, in a folder of this name; the archive is made once."""
    if not (shared / "archive").exists():
        _build("--sdist", ROOT, shared / "archive")
    if not (shared / name).exists():
        with tarfile.open(next((shared / "archive").glob("*.tar.gz"))) as archive:
            archive.extractall(shared / name, filter="data")
    return next((shared / name).iterdir())


def _build(kind: str, source: Path, out: Path) -> None:
    """Builds without fetching anything."""
    done = subprocess.run(
        [sys.executable, "-m", "build", kind, "--no-isolation", "--outdir", str(out), str(source)],
        capture_output=True, text=True, env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}, cwd=out.parent,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"no {kind}: {(done.stdout + done.stderr)[-600:]}")
