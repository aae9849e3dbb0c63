"""What a caller may ask, whichever way it comes (REST, page, assistant): names in, records out, limits kept."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from gamma_kg.complete import Completion, complete
from gamma_kg.errors import DataError, GammaError
from gamma_kg.explain import Explanation
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.logic.ask import Answer, ask, understood
from gamma_kg.logic.formula import Along, Formula, walk
from gamma_kg.machine.memory import parse_memory
from gamma_kg.machine.threads import engine_threads
from gamma_kg.predicting.answer_options import AnswerOptions
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.predicting.models import NamedModel
from gamma_kg.predicting.prediction import Prediction, Query
from gamma_kg.rules.reasons import MIN_CASES
from gamma_kg.serve.batching import ModelThreads
from gamma_kg.serve.hosted import HostedGraph, HostedGraphs
from gamma_kg.serve.jobs import Job, Jobs
from gamma_kg.serve.limits import Limits
from gamma_kg.serve.predictors import JobPredictor
from gamma_kg.serve.turn import Turn

Known = Literal["exclude", "include", "only"]
Triple = tuple[str, str, str]
Result = TypeVar("Result")
# A question for answers of one type asks for more and more until enough are of it, up to so many.
MOST_LOOKED_AT = 20_000


class TimeLimitError(GammaError):
    """The answer took longer than a request may."""


@dataclass(frozen=True)
class Wanted:
    """How answers are to be chosen."""

    top_k: int = 10
    known: Known = "exclude"
    answer_type: str | None = None
    min_probability: float = 0.0


class Service:
    """A model, graphs, the threads that answer and the one that works through jobs.

    `how` says what all answers are computed on: whole graphs or neighbourhoods, with rules or without, in what memory.
    """

    def __init__(
        self, model: NamedModel, graphs: HostedGraphs, limits: Limits, how: AnswerOptions | None = None
    ) -> None:
        self.model, self.graphs, self.limits, self.how = model, graphs, limits, how or AnswerOptions()
        self._turn = Turn()
        self._lanes = _lanes_of(model, limits.batch)
        self.threads = ModelThreads(
            self._answer,
            self._turn,
            size=limits.batch,
            wait_seconds=limits.batch_ms / 1000,
            queue=limits.queue,
            lanes=self._lanes,
        )
        self.jobs = Jobs(limits.jobs)
        self.reading = asyncio.Lock()  # held while an uploaded graph is read
        self.is_stopping = False
        for graph in graphs:
            self._note_calibration(graph)

    def host(self, title: str, kg: KnowledgeGraph) -> HostedGraph:
        """Adds an uploaded graph."""
        graph = self.graphs.add(title, kg, is_uploaded=True)
        self._note_calibration(graph)
        return graph

    def _note_calibration(self, graph: HostedGraph) -> None:
        """Probabilities that were fitted to this graph at another time count from the start."""
        kept = self.model.predictor.calibration(graph.kg, self.how.local, self.how.rules)
        graph.calibration = None if kept is None else str(kept)

    @property
    def folder(self) -> Path:
        """For uploads and results; nobody else's, and gone with the server."""
        return Path(self._folder.name)

    @cached_property
    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        # Made when it is needed first: tools for an assistant never do, and are ended by a signal.
        return tempfile.TemporaryDirectory(prefix="gamma-serve-")

    def announce_stop(self) -> None:
        """New work is refused from now on; streams end."""
        self.is_stopping = True

    def close(self) -> None:
        """Finishes what runs, then ends the threads."""
        self.announce_stop()
        self.jobs.stop(self.limits.grace_seconds)
        self.threads.stop()
        for graph in self.graphs:
            graph.review.close()
        if "_folder" in vars(self):
            self._folder.cleanup()

    async def predict(self, graph: HostedGraph, queries: Sequence[Query], wanted: Wanted) -> list[list[Prediction]]:
        """Ranked answers of each query."""
        if not 1 <= len(queries) <= self.limits.queries:
            raise DataError(f"ask 1 to {self.limits.queries} questions in one call, got {len(queries)}")
        if not 1 <= wanted.top_k <= self.limits.results:
            raise DataError(f"top_k must lie in 1..{self.limits.results}, got {wanted.top_k}")
        for query in queries:
            check_query(graph.kg, query)
        if wanted.answer_type is not None:
            graph.types.members(wanted.answer_type)  # an unknown type is refused before anything is computed
        if len(queries) == 1:  # as most are: no task of its own
            return [await self.in_time(self._predict(graph, queries[0], wanted))]
        return await self.in_time(asyncio.gather(*(self._predict(graph, query, wanted) for query in queries)))

    async def explain(
        self, graph: HostedGraph, fact: Triple, *, without: Sequence[Triple] = (), paths: int = 5, facts: int = 5
    ) -> Explanation:
        """Why the model believes a fact, on the graph less the facts `without`."""
        gamma = self.model.predictor
        if not isinstance(gamma, Gamma):
            raise DataError(f"{self.model.name} can't be explained; serve a GAMMA model for reasons")
        check_fact(graph.kg, fact)
        for gone in without:
            check_fact(graph.kg, gone)
        head, relation, tail = fact
        return await self.in_time(
            self.threads.call(
                lambda: gamma.explain(
                    graph.kg,
                    head=head,
                    relation=relation,
                    tail=tail,
                    num_paths=paths,
                    num_facts=facts,
                    without=without,
                    rules=self.how.rules,
                    local=self.how.local,
                    memory=self.how.memory,
                )
            )
        )

    async def ask(
        self,
        graph: HostedGraph,
        question: str | list[Any] | Formula,
        *,
        top_k: int,
        only_new: bool = False,
        logic: str = "product",
        why: bool = False,
    ) -> list[Answer]:
        """Answers to a question with several steps: SPARQL, a nested list of names, or a formula."""
        gamma = self.model.predictor
        if not isinstance(gamma, Gamma):
            raise DataError(f"{self.model.name} can't answer questions with several steps; serve a GAMMA model")
        formula, limit = await asyncio.to_thread(understood, question)  # parsing may take a moment
        steps = sum(isinstance(part, Along) for part in walk(formula))
        if steps > self.limits.steps:
            raise DataError(f"a question may have {self.limits.steps} steps here, this one has {steps}")
        top_k = min(top_k, limit or top_k, self.limits.results)
        if why and top_k > self.limits.explained:
            raise DataError(f"reasons are given for {self.limits.explained} answers at once, got top_k {top_k}")
        options: dict[str, Any] = {"top_k": top_k, "only_new": only_new, "logic": logic, "why": why}
        options |= {"memory": self.how.memory, "local": self.how.local, "rules": self.how.rules}
        return await self.in_time(self.threads.call(lambda: ask(graph.kg, formula, gamma, **options)))

    def start_complete(
        self,
        graph: HostedGraph,
        *,
        entity: str | None = None,
        relation: str | None = None,
        top: int = 100,
        min_probability: float = 0.0,
        min_cases: int = MIN_CASES,
        seconds: float | None = None,
    ) -> Job:
        """Looks for missing facts: of an entity, of a relation, or of the whole graph."""
        if not 1 <= top <= self.limits.results:
            raise DataError(f"top must lie in 1..{self.limits.results}, got {top}")
        if entity is not None:
            graph.kg.entity_id(entity)
        if relation is not None:
            graph.kg.relation_id(relation)

        def work(job: Job) -> Completion:
            return complete(
                JobPredictor(self.model.predictor, self._turn, job.check),
                graph.kg,
                entities=None if entity is None else [entity],
                relations=None if relation is None else [relation],
                top=top,
                min_probability=min_probability,
                min_cases=min_cases,
                budget_seconds=seconds,
                progress=job.progress,
                rules=self.how.rules,
                memory=self.how.memory,
                local=self.how.local,
            )

        about = " ".join(
            (
                "missing facts",
                *(() if relation is None else (f"of the relation {relation}",)),
                *(() if entity is None else (f"about {entity}",)),
                *(("of the whole graph",) if entity is None and relation is None else ()),
            )
        )
        wish = {"entity": entity or "", "relation": relation or "", "top": str(top), "min_cases": str(min_cases)}
        return self.jobs.start("complete", graph.id, about, work, wish)

    def start_calibrate(self, graph: HostedGraph) -> Job:
        """Fits probabilities to the graph by hiding some of its facts."""

        def work(job: Job) -> str:
            predictor = JobPredictor(self.model.predictor, self._turn, job.check)
            how = self.how
            found = str(predictor.calibrate(graph.kg, local=how.local, rules=how.rules, progress=job.progress))
            graph.calibration = found
            return found

        return self.jobs.start("calibrate", graph.id, "fit probabilities to this graph", work)

    async def in_time(self, work: Awaitable[Result]) -> Result:
        """The result, or an error when it takes longer than a request may."""
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await work
        except TimeoutError:
            raise TimeLimitError(
                f"no answer within {self.limits.seconds:g} s; ask for less, or run it as a job"
            ) from None

    async def _predict(self, graph: HostedGraph, query: Query, wanted: Wanted) -> list[Prediction]:
        members = None if wanted.answer_type is None else graph.types.members(wanted.answer_type)
        is_filtered = members is not None or wanted.known == "only"
        most = min(graph.kg.num_entities, MOST_LOOKED_AT)
        count = min(most, max(100, 4 * wanted.top_k)) if is_filtered else wanted.top_k
        while True:
            key = (graph, count, wanted.known != "exclude")
            found: list[Prediction] = await self.threads.ask(key, query)
            fitting = [
                p
                for p in found
                if p.probability >= wanted.min_probability
                and (wanted.known != "only" or p.known)
                and (members is None or query[1] is None or bool(members[graph.kg.entity_id(p.name)]))
            ]
            if not is_filtered or len(fitting) >= wanted.top_k or count >= most or len(found) < count:
                return fitting[: wanted.top_k]
            count = min(most, 4 * count)

    def _answer(self, key: tuple[HostedGraph, int, bool], queries: Sequence[Query]) -> list[list[Prediction]]:
        graph, top_k, include_known = key
        answers: list[list[Prediction]] = [[] for _ in queries]
        memory = None if self.how.memory is None else parse_memory(self.how.memory) // self._lanes
        how = replace(self.how, top_k=top_k, include_known=include_known, memory=memory)
        with graph.being_met():
            for position, predictions in self.model.predictor.predict_many(graph.kg, queries, how):
                answers[position] = predictions
        return answers


def _lanes_of(model: NamedModel, batch: int) -> int:
    """Batches at once: two, so that one is in the engine while the other is in Python. One where questions go one by
    one, where there is a single core to compute on, or where something else than a CPU computes."""
    predictor = model.predictor
    is_on_cpu = isinstance(predictor, Gamma) and predictor.device.type == "cpu"
    return 2 if batch > 1 and is_on_cpu and engine_threads() > 1 else 1


def check_query(kg: KnowledgeGraph, query: Query) -> None:
    """Refuses a query that does not leave exactly one part open, or that names what the graph does not hold."""
    head, relation, tail = query
    if query.count(None) != 1:
        raise DataError("give exactly two of head, relation and tail: the third is predicted")
    for entity in (head, tail):
        if entity is not None:
            kg.entity_id(entity)
    if relation is not None:
        kg.relation_id(relation)


def check_fact(kg: KnowledgeGraph, fact: Triple) -> None:
    """Refuses a fact whose names the graph does not hold."""
    head, relation, tail = fact
    kg.entity_id(head), kg.relation_id(relation), kg.entity_id(tail)
