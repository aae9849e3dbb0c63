"""How commands name a graph: a file, a folder, an endpoint, `-`, or `demo` for the bundled graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gamma_kg import KnowledgeGraph

DEMO = "demo"


def load_graph(name: str, **options: Any) -> KnowledgeGraph:
    """The graph that a user named on the command line; options as for `read_triples`."""
    if _is_demo(name):
        from gamma_kg.demo import demo_graph

        return demo_graph()
    from gamma_kg import KnowledgeGraph

    return KnowledgeGraph.from_file(name, **options)


@contextmanager
def as_files(names: Sequence[str]) -> Iterator[list[str]]:
    """The same names with that of the file in the place of `demo`."""
    with ExitStack() as opened:
        yield [_file_of_demo(opened) if _is_demo(name) else name for name in names]


def _is_demo(name: str) -> bool:
    return name == DEMO and not Path(name).exists()


def _file_of_demo(opened: ExitStack) -> str:
    from gamma_kg.demo import demo_file

    return str(opened.enter_context(demo_file()))


def title_of(name: str) -> str:
    """What to call a graph that was named on the command line: the file's name without its endings."""
    if "://" in name or name.startswith("sparql:"):
        return name.rstrip("/").rsplit("/", 1)[-1] or name
    last = Path(name).resolve().name if name != "-" else "facts"
    return last.split(".")[0] or last
