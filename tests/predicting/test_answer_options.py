"""An answer has several parts, computed in several places; all of them are computed by the options that were given."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from torch import Tensor

from gamma_kg import DataError, Gamma, KnowledgeGraph
from gamma_kg.complete import complete
from gamma_kg.graph.starts import Starts
from gamma_kg.logic.ask import ask
from gamma_kg.nn.config import GammaConfig
from gamma_kg.predicting.answer_options import AnswerOptions
from gamma_kg.predicting.score_batch import ScoreBatch

LOCAL, MEMORY = 7, "300MB"


class Noted(Gamma):
    """Writes down with which options each pass over the graph is asked for."""

    seen: set[tuple[Any, Any]]

    def score_batches(
        self,
        kg: KnowledgeGraph,
        start_Q: Starts | Tensor,
        relation_Q: Tensor,
        memory: Any = None,
        local: Any = "auto",
        **more: Any,
    ) -> Iterator[ScoreBatch]:
        self.seen.add((memory, local))
        return super().score_batches(kg, start_Q, relation_Q, memory, local, **more)

    def explain(self, kg: KnowledgeGraph, **options: Any) -> Any:
        self.seen.add((options["memory"], options["local"]))
        return super().explain(kg, **options)


@pytest.fixture
def noted(family: KnowledgeGraph, small_config: GammaConfig) -> Noted:
    """With probabilities fitted for this `local`, so that the other end of each fact is asked for too."""
    gamma = Noted.from_config(small_config, seed=3)
    gamma.seen = set()
    gamma.calibrate(family, local=LOCAL, share=0.5)
    gamma.seen = set()
    return gamma


WAYS: dict[str, Callable[[Noted, KnowledgeGraph, dict[str, Any]], Any]] = {
    "entities": lambda gamma, kg, options: gamma.predict(kg, head="Ann", relation="mother of", **options),
    "relations": lambda gamma, kg, options: gamma.predict(kg, head="Eve", tail="Gus", **options),
    "why": lambda gamma, kg, options: gamma.explain(
        kg, head="Eve", relation="married to", tail="Gus", num_facts=1, **options
    ),
    "missing facts": lambda gamma, kg, options: complete(gamma, kg, top=3, **options),
    "a question with steps": lambda gamma, kg, options: ask(
        kg, "SELECT ?x WHERE { <Eve> <married to> ?x }", gamma, top_k=1, why=True, **options
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_part_of_an_answer_loses_an_option_on_the_way(way: str, noted: Noted, family: KnowledgeGraph) -> None:
    WAYS[way](noted, family, {"local": LOCAL, "memory": MEMORY})
    assert noted.seen == {(MEMORY, LOCAL)}


def test_options_come_as_a_record_or_one_by_one(small_gamma: Gamma, family: KnowledgeGraph) -> None:
    query = ("Ann", "mother of", None)
    how = AnswerOptions(top_k=3, include_known=True)
    by_record = list(small_gamma.predict_many(family, [query], how))
    assert by_record == list(small_gamma.predict_many(family, [query], top_k=3, include_known=True))
    (_, two), *_ = small_gamma.predict_many(family, [query], how, top_k=2)
    assert [p.name for p in two] == [p.name for p in by_record[0][1][:2]]


def test_no_answers_can_not_be_asked_for() -> None:
    with pytest.raises(DataError, match="top_k must be at least 1, got 0"):
        AnswerOptions(top_k=0)
