"""Wider classes that definitions name, as far as they say something new.

A definition goes back to a wide class: the regulation of phosphorylation is a biological regulation that regulates
phosphorylation. That it is one is known already where a chain of narrower classes leads there. Such a shortcut beside
the hierarchy teaches that anything may stand right below its top, so it is no fact of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

Pair = tuple[str, str]  # a class and a wider one


def new_genera(genera: Iterable[Pair], hierarchy: Iterable[Pair]) -> list[Pair]:
    """Those of the genera to which no chain of the hierarchy, or of other genera that stay, leads."""
    stated = set(hierarchy)
    genera = [pair for pair in dict.fromkeys(genera) if pair not in stated]
    above: dict[str, set[str]] = {}
    for below, wider in (*stated, *genera):
        above.setdefault(below, set()).add(wider)
    kept = []
    for own, genus in genera:
        above[own].discard(genus)
        if not _leads(above, own, genus):
            above[own].add(genus)
            kept.append((own, genus))
    return kept


def _leads(above: dict[str, set[str]], start: str, end: str) -> bool:
    found, waiting = {start}, [start]
    while waiting and end not in found:
        new = above.get(waiting.pop(), set()) - found
        found |= new
        waiting.extend(new)
    return end in found
