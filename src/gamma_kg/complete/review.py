"""One page on which a curator goes through the proposals: reasons, accept and reject, download. It works offline.

Names come from the user's data and are never markup: they reach the page as JSON in a script of type
`application/json`, and from there only through `textContent`. Choices stay in the browser (localStorage) under the
page's own name, so that the page can be closed and opened again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from gamma_kg.complete.proposals import Fact
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.io.atomic import write_text
from gamma_kg.io.shown import shown
from gamma_kg.rules import rules_of
from gamma_kg.rules.reasons import ReasonFinder

REASONS = 4


def write_review(path: str | Path, kg: KnowledgeGraph, facts: Sequence[Fact], *, title: str = "") -> None:
    """Writes the page for these facts."""
    finder, rules = ReasonFinder(kg), rules_of(kg)
    rows = [_row(kg, finder, rules, fact) for fact in facts]
    write_text(Path(path), review_page(rows, title or "the graph"))


def review_page(rows: Sequence[dict[str, Any]], title: str) -> str:
    """The page as text; `rows` as `_row` makes them."""
    record = json.dumps({"title": shown(title), "facts": list(rows)}, ensure_ascii=True)
    # A name must not end the script, whatever it says.
    record = record.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    key = hashlib.sha256(record.encode()).hexdigest()[:16]
    page = (files("gamma_kg") / "complete" / "review.html").read_text(encoding="utf-8")
    return page.replace("@KEY@", key).replace("@RECORD@", record)


def _row(kg: KnowledgeGraph, finder: ReasonFinder, rules: Any, fact: Fact) -> dict[str, Any]:
    h, r, t = kg.entity_id(fact.head), kg.relation_id(fact.relation), kg.entity_id(fact.tail)
    reasons = [
        {
            "share": reason.count / reason.of,
            "of": reason.of,
            "text": shown(reason.text),
            "facts": [[shown(part) for part in known] for known in reason.facts],
        }
        for reason in finder.find(h, r, t, REASONS)
    ]
    return {
        "names": [shown(name) for name in (fact.head, fact.relation, fact.tail)],
        "ids": [kg.entities.identifier(h), kg.relations.identifier(r), kg.entities.identifier(t)],
        "is_rdf": bool(getattr(kg.entities, "has_terms", False)),
        "probability": fact.probability,
        "score": fact.score,
        "reasons": reasons,
        "why_not": rules.why_not(h, r, t),
    }
