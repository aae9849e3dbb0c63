"""Imports point one way: data → graph → kernels → nn → predicting → evaluation, training → bench → command line."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "gamma_kg"
# A module may import from its own height and from lower ones.
HEIGHTS = {
    name: height
    for height, names in enumerate(
        (
            ("errors",),
            ("io", "machine", "drawing"),
            ("data",),
            ("graph",),
            ("kernels", "analysis", "demo", "rules"),
            ("nn",),
            ("explain",),
            ("predicting",),
            ("__init__",),
            ("logic",),
            ("complete", "evaluation"),
            ("training", "report", "distributed"),
            ("bench",),
            ("serve",),
            ("cli",),
            ("__main__",),
        )
    )
    for name in names
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
            parts |= {
                name if (SOURCE / name).exists() or (SOURCE / f"{name}.py").exists() else "__init__" for name in names
            }
    return parts


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down(path: Path) -> None:
    height = HEIGHTS[part_of(path)]
    above = {part for part in imported_parts(path) if HEIGHTS[part] > height}
    assert not above, f"{path.relative_to(SOURCE)} imports {above}, which stand above it"


def test_reading_data_needs_no_torch() -> None:
    for path in sorted((SOURCE / "data").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "torch" for name in names), f"{path.name} imports torch"
