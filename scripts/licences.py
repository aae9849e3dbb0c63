"""Writes docs/licences.md: every package that CI installs, its version and its licence, as its own metadata tell it.

python scripts/licences.py            writes the page
python scripts/licences.py --check    says whether the page is current; exit code 1 if not
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, distribution, metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKS = (ROOT / ".ci" / "requirements.lock", ROOT / ".ci" / "torch.lock")
PAGE = ROOT / "docs" / "licences.md"
HEAD = """# Licences of what GAMMA uses

GAMMA itself is under the MIT licence. The packages below are what CI installs to build, test and document it, by the
locks in the folder .ci; a plain installation brings only those marked *run* and what they need. None is copied into
GAMMA. The licence is what each package's own metadata say. Written by scripts/licences.py.

| package | version | licence | |
|---|---|---|---|
"""
# What pyproject.toml lists as needed to run, without extras.
RUN = ("torch", "numpy", "polars", "pydantic", "pyoxigraph", "rich", "safetensors", "scipy", "typer", "zstandard")
LONGEST = 60


def locked() -> dict[str, str]:
    """Name → version of every locked package."""
    lines = [line for lock in LOCKS for line in lock.read_text().splitlines()]
    found = [re.match(r"([A-Za-z0-9._-]+)==([^ \\]+)", line) for line in lines]
    return {_name(match[1]): match[2] for match in found if match}


def licence(package: str) -> str:
    """What the installed package's metadata say: the expression, the classifiers, or the first line of the text."""
    told = metadata(package)
    if told.get("License-Expression"):
        return str(told["License-Expression"])
    classifiers = [
        line.rpartition(" :: ")[2] for line in told.get_all("Classifier") or [] if line.startswith("License")
    ]
    if classifiers := [name for name in classifiers if name != "OSI Approved"]:
        return ", ".join(sorted(set(classifiers)))
    files = [file for file in distribution(package).files or [] if file.name.upper().startswith("LICENSE")]
    text = (told.get("License") or (files[0].read_text() if files else "")).strip().splitlines()
    return text[0].strip()[:LONGEST] if text else "not told"


def rows() -> list[str]:
    """A line of the table for each package; those that are not installed keep the line they have."""
    kept = {row.split(" | ")[0].removeprefix("| "): row for row in _old_rows()}
    found = []
    for name, version in sorted(locked().items()):
        try:
            shown = licence(name).replace("|", "/")
            found.append(f"| {name} | {version} | {shown} | {'*run*' if name in RUN else ''} |")
        except PackageNotFoundError:
            found.append(kept.get(name, f"| {name} | {version} | not installed where this was written | |"))
    return found


def page() -> str:
    return HEAD + "\n".join(rows()) + "\n"


def _old_rows() -> list[str]:
    text = PAGE.read_text("utf-8") if PAGE.exists() else ""
    return [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| package")]


def _name(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(
            0 if PAGE.exists() and PAGE.read_text("utf-8") == page() else "docs/licences.md: run scripts/licences.py"
        )
    PAGE.write_text(page(), "utf-8")
