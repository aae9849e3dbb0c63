"""Imports point one way: data → graph → kernels → nn → checkpoint → training, evaluation, prediction → command line."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "gamma_kg"
# A module may import from its own rank and from lower ones.
RANKS = {
    "errors": 0,
    "memory": 0,
    "data": 1,
    "demo": 6,
    "algebra": 2,
    "config": 2,
    "graph": 2,
    "kernels": 3,
    "nn": 4,
    "checkpoint": 5,
    "inference": 6,
    "predict": 6,
    "cli": 9,
    "__main__": 10,
    "__init__": 7,
}


def part_of(path: Path) -> str:
    """`errors` for errors.py, `graph` for graph/edges.py."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_parts(path: Path) -> set[str]:
    """Parts of the package that a module imports anywhere, also inside functions, but not for types alone."""
    parts = set()
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "gamma_kg":
            names = node.module.split(".")[1:2] or [alias.name for alias in node.names]
            parts |= {name if (SOURCE / name).exists() or (SOURCE / f"{name}.py").exists() else "__init__" for name in names}
    return parts


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down(path: Path) -> None:
    rank = RANKS[part_of(path)]
    above = {part for part in imported_parts(path) if RANKS[part] > rank}
    assert not above, f"{path.relative_to(SOURCE)} imports {above}, which stand above it"


def test_reading_data_needs_no_torch() -> None:
    for path in sorted((SOURCE / "data").rglob("*.py")):
        assert "torch" not in path.read_text().replace("torchrun", ""), f"{path.name} mentions torch"
