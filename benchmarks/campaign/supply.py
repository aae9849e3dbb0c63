"""What GAMMA is built from and what it ships: the lock, the licences, an archive that builds, a wheel that repeats."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from campaign.lines import Effort, Line

ROOT = Path(__file__).resolve().parents[2]
INDEX = "https://pypi.org/pypi"
# Tests that need nothing but the package and what lies in the archive.
PYTEST = ("-p", "no:cacheprovider")
TESTED = ("tests/io", "tests/graph", "tests/nn", "tests/kernels/test_propagate.py", "tests/kernels/test_native.py")


LOCKED, LICENCES = "supply: every package is locked by hash", "supply: licences are listed"
WEAKNESSES = "supply: no known weakness"
BUILT = "supply: two wheels are the same", "supply: tests of the source archive"


def supply_names(effort: Effort) -> list[str]:
    return [LOCKED, LICENCES] if effort.is_short else [*BUILT, LOCKED, LICENCES, WEAKNESSES]


def supply(folder: Path, effort: Effort) -> Iterator[Line]:
    line = Line(LOCKED)
    if effort.wants(line.name):
        yield _locked(line)
    line = Line(LICENCES)
    if effort.wants(line.name):
        words = [sys.executable, str(ROOT / "scripts" / "licences.py"), "--check"]
        done = subprocess.run(words, capture_output=True, text=True)
        line.expect(done.returncode == 0, done.stderr.strip())
        yield line
    if effort.is_short:
        return
    line = Line(WEAKNESSES)
    if effort.wants(line.name):
        yield _audited(line)
    if any(effort.wants(name) for name in BUILT):
        yield from _built(*map(Line, BUILT), folder)


def _lock() -> dict[str, tuple[str, str]]:
    """Name of each locked package → its version and hashes."""
    lock = (ROOT / ".ci" / "requirements.lock").read_text() + (ROOT / ".ci" / "torch.lock").read_text()
    entry = r"(?m)^(\S+)==(\S+)((?:[ \\\n]+--hash=sha256:[0-9a-f]{64})*)"
    return {_name(name): (version, hashes) for name, version, hashes in re.findall(entry, lock)}


def _audited(line: Line) -> Line:
    """What the package index knows of the locked versions: of each version, or (a mirror) of the latest one only."""
    locked, unknown = _lock(), []
    for name, (version, _) in locked.items():
        version = version.partition("+")[0]  # torch for the CPU
        told = _asked(f"{INDEX}/{name}/{version}/json") or _asked(f"{INDEX}/{name}/json")
        if told is None or told["info"]["version"] != version:
            unknown.append(name)
            continue
        known = [found["id"] for found in told.get("vulnerabilities") or [] if not found.get("withdrawn")]
        line.expect(not known, f"{name} {version}: {', '.join(known)}")
    if not line.tried:
        line.skipped = f"{INDEX} can't be reached"
    elif unknown:
        line.remark = f"of {len(locked)} packages, {len(unknown)} are not at the only version that this index tells of"
    return line


def _asked(url: str) -> dict[str, Any] | None:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return dict(json.load(answer))
    except (OSError, ValueError):
        return None


def _locked(line: Line) -> Line:
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
    return line


def _name(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def _built(same: Line, tested: Line, folder: Path) -> Iterator[Line]:
    """The source archive, unpacked in two places with other names, gives the same wheel twice; its tests pass."""
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    done = _build("--sdist", ROOT, folder / "archive", environment)
    archives = list((folder / "archive").glob("*.tar.gz"))
    if done or not archives:
        same.expect(False, f"no source archive: {done}")
        yield same
        return
    wheels, places = [], [folder / "one", folder / "another-place"]
    for place in places:
        with tarfile.open(archives[0]) as archive:
            archive.extractall(place, filter="data")
        source = next(place.iterdir())
        done = _build("--wheel", source, place / "wheel", environment)
        same.expect(not done, f"no wheel: {done}")
        wheels += list((place / "wheel").glob("*.whl"))
    same.expect(len(wheels) == 2 and wheels[0].read_bytes() == wheels[1].read_bytes(), f"wheels differ: {wheels}")
    yield same
    source, target = next(path for path in places[0].iterdir() if path.name != "wheel"), folder / "installed"
    shutil.unpack_archive(wheels[0], target, "zip")
    # Without site (-S): the editable installation of this Python would take the place of what PYTHONPATH says.
    paths = os.pathsep.join([str(target), *sys.path])
    program = f"import sys, pytest, gamma_kg; print(gamma_kg.__file__); sys.exit(pytest.main({[*PYTEST, *TESTED]!r}))"
    done_ = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=source, text=True, capture_output=True,
        env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    passed, found = re.search(r"(\d+) passed", done_.stdout), done_.stdout.partition("\n")[0]
    tested.tried = int(passed[1]) if passed else 0
    tested.expect(tested.tried > 0, f"no test was run: {done_.stdout[-300:]} {done_.stderr[-300:]}")
    tested.expect(done_.returncode == 0, f"exit code {done_.returncode}: {done_.stdout[-500:]}")
    tested.expect(found.startswith(str(target)), f"what was tested is {found}")
    yield tested


def _build(kind: str, source: Path, out: Path, environment: dict[str, str]) -> str:
    """Builds without fetching anything; what was said in the end where it failed."""
    done = subprocess.run(
        [sys.executable, "-m", "build", kind, "--no-isolation", "--outdir", str(out), str(source)],
        capture_output=True, text=True, env=environment, cwd=out.parent,
    )  # fmt: skip
    return "" if done.returncode == 0 else (done.stdout + done.stderr)[-600:] or "failed"
