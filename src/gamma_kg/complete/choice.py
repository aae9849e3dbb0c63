"""Which facts a completion is about, as ids: every name is looked up here, before anything is computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gamma_kg.errors import DataError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import direct_of
from gamma_kg.rules import Rules, rules_of
from gamma_kg.rules.reasons import MIN_CASES
from gamma_kg.rules.slots import REST, SLOTS_PER_TICK

IntArray = NDArray[np.int64]
# Unless told otherwise one relation takes at most this part of the list while others have proposals.
SHARE_OF_LIST = 5
LEAST_CAP = 10
# Where no fact is likely enough, so many of the likeliest are listed: an empty list after minutes says nothing.
FEW_UNLIKELY = 20


@dataclass(frozen=True)
class Choice:
    """What is asked for. Thresholds are per relation id; `cap` is how many facts of one relation, strictly or not.
    The list ends at `likely_from`, unless nothing is so probable."""

    top: int
    relations: tuple[int, ...]
    are_named: bool  # whether the relations were asked for by name
    entities: frozenset[int] | None
    type_: int | None
    least: float
    least_of: Mapping[int, float]
    cap: int
    is_strict: bool
    min_cases: int
    likely_from: float = 0.0

    @classmethod
    def of(
        cls,
        kg: KnowledgeGraph,
        *,
        top: int = 100,
        relations: Sequence[str] | None = None,
        exclude_relations: Sequence[str] = (),
        entities: Sequence[str] | None = None,
        type: str | None = None,
        min_probability: float | Mapping[str, float] = 0.0,
        max_per_relation: int | None = None,
        min_cases: int = MIN_CASES,
        likely_from: float = 0.0,
    ) -> Choice:
        """From names; `min_probability` may be one for all or one per relation, with "" for all others."""
        if top < 1:
            raise DataError(f"top must be at least 1, got {top}")
        if max_per_relation is not None and max_per_relation < 1:
            raise DataError(f"max_per_relation must be at least 1, got {max_per_relation}")
        if min_cases < 0:
            raise DataError(f"min_cases must not be negative, got {min_cases}")
        by_name = dict(min_probability) if isinstance(min_probability, Mapping) else {"": min_probability}
        for name, bound in by_name.items():
            if not 0 <= bound <= 1:
                of = f" of {name!r}" if name else ""
                raise DataError(f"min_probability{of} must lie between 0 and 1, got {bound}")
        excluded = {kg.relation_id(name) for name in exclude_relations}
        asked = range(kg.num_relations) if relations is None else sorted({kg.relation_id(name) for name in relations})
        chosen = tuple(r for r in asked if r not in excluded)
        if not chosen:
            raise DataError("no relation is left to ask for: all of them are excluded")
        return cls(
            top=top,
            relations=chosen,
            are_named=relations is not None,
            entities=None if entities is None else frozenset(kg.entity_id(name) for name in entities),
            type_=None if type is None else _type_id(kg, type),
            least=by_name.pop("", 0.0),
            least_of={kg.relation_id(name): bound for name, bound in by_name.items()},
            cap=max_per_relation or max(LEAST_CAP, top // SHARE_OF_LIST),
            is_strict=max_per_relation is not None,
            min_cases=min_cases,
            likely_from=likely_from,
        )

    def about(
        self, kg: KnowledgeGraph, queries: IntArray, *, by_rules: bool, tick: Callable[[], None] = lambda: None
    ) -> IntArray:
        """The queries that start at a thing that is asked about; blank nodes never are. `tick` as for
        `choose_queries`."""
        if self.entities is not None:
            queries = queries[np.isin(queries[:, 0], sorted(self.entities))]
        rules = rules_of(kg)
        if not isinstance(rules, Rules):
            return queries
        if by_rules and not self.are_named:  # which property is under which is for whoever designs a vocabulary
            about_properties = [r for r in self.relations if rules.axioms.sorts.between_properties(r)]
            queries = queries[~np.isin(direct_of(queries[:, 1], kg.num_relations), about_properties)]
        if self.type_ is not None:
            queries = queries[rules.axioms.members(self.type_)[queries[:, 0]]]
        if rules.axioms.is_blank is not None:
            queries = queries[~rules.axioms.is_blank[queries[:, 0]]]
        return queries[~_out_of_place(rules, queries, tick)] if by_rules else queries

    def bound(self, relation: int) -> float:
        return self.least_of.get(relation, self.least)

    def listed(self, ordered: list[Any], admits: Callable[[int, int, int], bool]) -> list[Any]:
        """The facts (head, relation, tail, probability, …) for the list, of those that are admitted: no relation beyond
        its cap, unless places would stay empty."""
        likely = [fact for fact in ordered if fact[3] >= self.likely_from or fact[1] in self.least_of]
        ordered, top = (likely, self.top) if likely else (ordered, min(self.top, FEW_UNLIKELY))
        taken: list[int] = []
        waiting: list[int] = []
        count: Counter[int] = Counter()
        for at, fact in enumerate(ordered):
            if count[fact[1]] == top or not admits(*fact[:3]):
                continue
            has_room = count[fact[1]] < self.cap
            (taken if has_room else waiting).append(at)
            count[fact[1]] += 1
            if len(taken) == top:
                break
        if not self.is_strict:
            taken += waiting[: top - len(taken)]
        return [ordered[at] for at in sorted(taken)]

    def record(self) -> dict[str, Any]:
        """What must be the same for a run to go on: what is asked and kept, not how it is listed."""
        least = {str(r): bound for r, bound in sorted(self.least_of.items())}
        return {
            "relations": list(self.relations),
            "entities": None if self.entities is None else sorted(self.entities),
            "type": self.type_,
            "min_probability": [self.least, least],
            "order of queries": f"rest of {REST}",
            "left unasked": "habits, properties, values, full columns",
            "min_cases": self.min_cases,
        }


def _out_of_place(rules: Rules, queries: IntArray, tick: Callable[[], None]) -> NDArray[np.bool_]:
    """Queries that no answer fits, whatever it is: the class above the top one, the country of a country, the base of a
    property where only pizzas have one. And what is to be said of terms that the ontology only refers to: that is for
    the ontology that they are from."""
    found = np.zeros(len(queries), dtype=bool)
    order = np.argsort(queries[:, 1], kind="stable")
    of_each = np.split(order, np.flatnonzero(np.diff(queries[order, 1])) + 1) if len(queries) else []
    for number, rows in enumerate(of_each, 1):
        if number % SLOTS_PER_TICK == 0:
            tick()
        relation = int(queries[rows[0], 1])
        if not rules.unasked.can_be_answered(relation):
            found[rows] = True
            continue
        for outside in (
            rules.unasked.out_of_place(relation),
            rules.axioms.against(relation),
            rules.axioms.sorts.others(relation),
        ):
            if outside is not None:
                found[rows] |= outside[queries[rows, 0]]
        found[rows] |= rules.slots.are_excluded(relation, queries[rows, 0])
        if relation < rules.num_relations and (top := rules.top(relation)) is not None:
            found[rows] |= queries[rows, 0] == top
    return found


def _type_id(kg: KnowledgeGraph, name: str) -> int:
    found, rules = kg.entity_id(name), rules_of(kg)
    if not isinstance(rules, Rules):
        raise DataError(f"the graph is too large to look for all things of the type {name!r}")
    if int(rules.axioms.members(found).sum()) < 2:
        most = Counter(
            tail for r in rules.axioms.types or rules.axioms.wider for tail in rules.closures.pairs(r)[1].tolist()
        )
        known = ", ".join(kg.entities[i] for i, _ in most.most_common(5)) or "none"
        raise DataError(f"nothing has the type {name!r}; the commonest types here: {known}")
    return found
