"""GammaBatch: frames of queries in, frames of answers out; one object for Ray Data, Spark and a plain pandas loop.

    answers = GammaBatch("G.gamma")(queries)                                                                 # pandas
    dataset.map_batches(GammaBatch, fn_constructor_args=["G.gamma"], batch_format="pandas", concurrency=4)   # Ray
    frame.mapInPandas(GammaBatch("G.gamma"), schema=GammaBatch.SPARK_SCHEMA)                                 # Spark

Until it is first called it holds names only, so it can be sent to other processes; there the graph is opened and the
model loaded once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.predicting.answer_options import AnswerOptions
from gamma_kg.predicting.calibration import Calibration
from gamma_kg.predicting.frames import predict_frame
from gamma_kg.predicting.models import resolve_model
from gamma_kg.predicting.predictor import Predictor

if TYPE_CHECKING:
    import pandas


class GammaBatch:
    """Answers queries: rows of head, relation, tail of which one is empty, null or `?` (see `predict_frame`).

    `calibration` is what `Gamma.calibrate` found elsewhere for the same graph and model; the other options are those of
    `AnswerOptions`.
    """

    SPARK_SCHEMA = (
        "head string, relation string, tail string, question long, asked string, rank long, probability double, "
        "score double, known boolean, local long, is_sampled boolean"
    )

    def __init__(
        self,
        graph: str | Path,
        model: str | Path | None = None,
        *,
        calibration: Calibration | None = None,
        **options: Any,
    ) -> None:
        self.graph, self.model = str(graph), None if model is None else str(model)
        self.calibration, self.how = calibration, AnswerOptions(**options)

    @cached_property
    def kg(self) -> KnowledgeGraph:
        """The graph, opened when it is first needed, in the process that needs it."""
        return KnowledgeGraph.from_file(self.graph)

    @cached_property
    def predictor(self) -> Predictor:
        predictor = resolve_model(self.model).predictor
        if self.calibration is not None:
            predictor.adopt_calibration(self.kg, self.calibration, self.how.local, self.how.rules)
        return predictor

    @overload
    def __call__(self, batch: pandas.DataFrame | Mapping[str, Any]) -> pandas.DataFrame: ...
    @overload
    def __call__(self, batch: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]: ...
    def __call__(self, batch: Any) -> Any:
        """Answers of a frame (or of a dict of columns) as a frame; of an iterator of frames as an iterator."""
        import pandas as pd

        if isinstance(batch, Iterator):
            return map(self, batch)
        frame = pd.DataFrame(dict(batch)) if isinstance(batch, Mapping) else batch
        return predict_frame(self.predictor, self.kg, frame, how=self.how)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("kg", "predictor")}
