"""The predictor of jobs: the same model and calibrations, but it gives the model back after every few queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from torch import Tensor

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.predicting.predictor import Predictor
from gamma_kg.predicting.score_batch import ScoreBatch
from gamma_kg.predicting.switch import Local
from gamma_kg.serve.turn import Turn

QUERIES_A_TURN = 16


class JobPredictor(Predictor):
    """Scores as `predictor` does, in turns; `check` is called between them and may end the job."""

    def __init__(self, predictor: Predictor, turn: Turn, check: Callable[[], None]) -> None:
        super().__init__()
        self._predictor, self._turn, self._check = predictor, turn, check
        self.branch_names = predictor.branch_names
        self.calibrations = predictor.calibrations

    def score_batches(
        self,
        kg: KnowledgeGraph,
        source_Q: Tensor,
        relation_Q: Tensor,
        memory: str | int | None = None,
        local: Local = "auto",
    ) -> Iterator[ScoreBatch]:
        for start in range(0, len(source_Q), QUERIES_A_TURN):
            part = slice(start, start + QUERIES_A_TURN)
            self._check()
            with self._turn.of_a_job():
                batches = list(
                    self._predictor.score_batches(kg, source_Q[part], relation_Q[part], memory=memory, local=local)
                )
            for batch in batches:
                yield replace(batch, query=batch.query + start)

    def triples(self, kg: KnowledgeGraph, local: Local) -> int | None:
        return self._predictor.triples(kg, local)

    def fingerprint(self) -> str:
        return self._predictor.fingerprint()
