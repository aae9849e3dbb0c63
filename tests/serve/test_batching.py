"""Questions of many callers: one batch, the same bits as alone, and limits that hold."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.demo import demo_graph
from gamma_kg.machine import meanwhile
from gamma_kg.machine.threads import engine_threads, limited_threads
from gamma_kg.predicting.answer_options import AnswerOptions
from gamma_kg.predicting.models import NamedModel
from gamma_kg.predicting.prediction import Prediction
from gamma_kg.serve.batching import ModelThreads, QueueFullError
from gamma_kg.serve.hosted import HostedGraphs
from gamma_kg.serve.limits import Limits
from gamma_kg.serve.service import Service, TimeLimitError, Wanted
from gamma_kg.serve.turn import Turn


class Held:
    """Answers with the batch's size, but not before it is let go."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.batches: list[list[Any]] = []

    def answer(self, key: Any, items: Sequence[Any]) -> list[Any]:
        self.begun.set()
        self.go.wait(60)
        self.batches.append(list(items))
        return [(key, item, len(items)) for item in items]


@pytest.fixture
def held() -> Iterator[tuple[Held, ModelThreads]]:
    work = Held()
    thread = ModelThreads(work.answer, Turn(), size=4, wait_seconds=0.01, queue=6)
    yield work, thread
    work.go.set()
    thread.stop()


async def being_answered(work: Held) -> None:
    while not work.begun.is_set():
        await asyncio.sleep(0.001)


async def started(thread: ModelThreads, waiting: int) -> None:
    while thread.waiting != waiting:
        await asyncio.sleep(0.001)


def test_questions_with_the_same_key_share_a_batch_and_others_do_not(held: tuple[Held, ModelThreads]) -> None:
    work, thread = held

    async def callers() -> list[Any]:
        first = asyncio.create_task(thread.ask("a", 0))
        await being_answered(work)  # alone
        rest = [asyncio.create_task(thread.ask(key, i)) for i, key in enumerate("aabaa", 1)]
        await started(thread, 5)
        work.go.set()
        return await asyncio.gather(first, *rest)

    answers = asyncio.run(callers())
    assert work.batches == [[0], [1, 2, 4, 5], [3]]
    assert answers[0] == ("a", 0, 1) and answers[3] == ("b", 3, 1) and answers[4] == ("a", 4, 4)


def test_answers_are_handed_over_when_the_engine_computes_the_next_ones() -> None:
    handed, computing, go = threading.Event(), threading.Event(), threading.Event()

    def answer(key: Any, items: Sequence[Any]) -> list[Any]:
        if items == ["second"]:
            before = handed.is_set()
            meanwhile.run()  # as the engine does
            computing.set()
            go.wait(10)
            return [before]
        computing.wait(0.05)  # until the second question waits
        return list(items)

    async def callers() -> None:
        first = asyncio.create_task(thread.ask("a", "first"))
        first.add_done_callback(lambda _: handed.set())
        await asyncio.sleep(0.01)
        second = asyncio.create_task(thread.ask("b", "second"))
        assert await first == "first"
        assert computing.wait(10) and not second.done()  # the first answer is there while the second is computed
        go.set()
        assert await second is False  # and was not handed over before that began
        assert await thread.ask("c", "alone") == "alone"  # with nobody after it, it is handed over at once

    thread = ModelThreads(answer, Turn(), size=1, wait_seconds=0, queue=6)
    asyncio.run(callers())
    thread.stop()


def test_a_full_queue_refuses_and_an_abandoned_question_is_not_answered(held: tuple[Held, ModelThreads]) -> None:
    work, thread = held

    async def callers() -> None:
        tasks = [asyncio.create_task(thread.ask("a", 0))]
        await being_answered(work)
        tasks += [asyncio.create_task(thread.ask("a", i)) for i in range(1, 7)]
        await started(thread, 6)
        with pytest.raises(QueueFullError, match="6 questions wait"):
            await thread.ask("a", 7)
        tasks[2].cancel()
        work.go.set()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(callers())
    assert sorted(item for batch in work.batches for item in batch) == [0, 1, 3, 4, 5, 6]


def test_an_error_reaches_those_who_asked_and_nobody_else(held: tuple[Held, ModelThreads]) -> None:
    work, thread = held
    work.go.set()

    async def callers() -> None:
        with pytest.raises(ZeroDivisionError):
            await thread.call(lambda: 1 / 0)
        assert await thread.ask("a", 1) == ("a", 1, 1)

    asyncio.run(callers())


@pytest.mark.parametrize("batch", [1, 8, 64])
def test_answers_in_a_batch_are_bit_equal_to_asking_alone(
    make_service: Callable[..., Service], family: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    gamma = Gamma.from_pretrained()
    # Tests compute with one thread, but lanes are for machines with more.
    monkeypatch.setattr("gamma_kg.serve.service.engine_threads", lambda: 2)
    service = make_service(predictor=gamma, batch=batch)
    graph = service.graphs["family"]
    queries = [(e, r, None) for e in family.entities for r in family.relations]
    queries += [(None, r, e) for e in family.entities for r in family.relations]

    async def together() -> list[list[Prediction]]:
        # Many callers with one question each, all at once.
        found = await asyncio.gather(*(service.predict(graph, [query], Wanted(top_k=4)) for query in queries))
        return [answers for (answers,) in found]

    answers = asyncio.run(together())
    assert (service.threads.batches < len(queries) / 4) == (batch > 1)
    fresh = Gamma.from_pretrained()
    for query, found in zip(queries, answers, strict=True):
        head, relation, tail = query
        assert found == fresh.predict(family, head=head, relation=relation, tail=tail, top_k=4)


def test_local_answers_in_two_lanes_are_bit_equal_to_asking_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    gamma, kg = Gamma.from_pretrained(), demo_graph()
    monkeypatch.setattr("gamma_kg.serve.service.engine_threads", lambda: 2)
    how = AnswerOptions(top_k=5, local=150)
    queries = [(kg.entities[7 * i], kg.relations[i % kg.num_relations], None) for i in range(60)]
    alone = [next(iter(gamma.predict_many(kg, [query], how)))[1] for query in queries]
    assert {answer.local for answers in alone for answer in answers} == {150}
    graphs = HostedGraphs()
    graph = graphs.add("demo", kg)
    service = Service(NamedModel("gamma", "0", gamma, ""), graphs, Limits(batch=4), how)
    computed_by: set[str] = set()
    predict_many = gamma.predict_many

    def noted(*asked: Any) -> Iterator[tuple[int, list[Prediction]]]:
        computed_by.add(threading.current_thread().name)
        return predict_many(*asked)

    monkeypatch.setattr(gamma, "predict_many", noted)

    async def together() -> list[list[Prediction]]:
        found = await asyncio.gather(*(service.predict(graph, [query], Wanted(top_k=5)) for query in queries))
        return [answers for (answers,) in found]

    answers = asyncio.run(together())
    service.close()
    assert len(computed_by) == 2 and service.threads.batches < len(queries)
    assert answers == alone


def test_a_request_that_takes_too_long_is_told_so(make_service: Callable[..., Service]) -> None:
    service = make_service(seconds=0.05)

    async def slow() -> None:
        blocking = asyncio.create_task(service.threads.call(lambda: threading.Event().wait(0.3)))
        await asyncio.sleep(0)  # the thread is busy before the question comes
        with pytest.raises(TimeLimitError, match="no answer within"):
            await service.predict(service.graphs["family"], [("Ann", "mother of", None)], Wanted())
        await blocking

    asyncio.run(slow())


class Beside:
    """Notes what is answered in which thread, with how many threads of the engine; a batch ends when it is let go."""

    def __init__(self) -> None:
        self.begun: list[tuple[list[Any], int]] = []
        self.go: dict[Any, threading.Event] = {}
        self.lock = threading.Lock()

    def answer(self, key: Any, items: Sequence[Any]) -> list[Any]:
        with self.lock:
            self.begun.append((list(items), engine_threads()))
        for item in items:
            if item in self.go:
                self.go[item].wait(10)
        return list(items)


@pytest.fixture
def lanes(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Beside, ModelThreads]]:
    monkeypatch.setattr("gamma_kg.serve.batching.engine_threads", lambda: 6)
    work = Beside()
    threads = ModelThreads(work.answer, Turn(), size=4, wait_seconds=0.01, queue=100, lanes=2)
    yield work, threads
    for event in work.go.values():
        event.set()
    threads.stop()


async def at_once(threads: ModelThreads, items: Sequence[Any]) -> list[asyncio.Task[Any]]:
    """Questions of which none is taken before all of them wait."""
    with threads._lock:
        tasks = [asyncio.create_task(threads.ask("a", item)) for item in items]
        await asyncio.sleep(0)
    return tasks


async def until(work: Beside, batches: int) -> None:
    while len(work.begun) < batches:
        await asyncio.sleep(0.001)


def test_a_second_batch_runs_beside_the_first_with_its_part_of_the_threads(lanes: tuple[Beside, ModelThreads]) -> None:
    work, threads = lanes
    work.go = {name: threading.Event() for name in ("first", "second")}

    async def callers() -> None:
        first = asyncio.create_task(threads.ask("a", "first"))
        await until(work, 1)
        assert work.begun == [(["first"], 6)]  # alone: all threads
        work.go["first"].set()
        await first
        together = await at_once(threads, ["second", 1, 2, 3])
        await until(work, 3)
        # Shared between the lanes, half of the threads each; one is done while the other is still held.
        assert sorted(work.begun[1:], key=str) == [(["second", 1], 3), ([2, 3], 3)]
        assert await asyncio.gather(*together[2:]) == [2, 3] and not together[0].done()
        work.go["second"].set()
        assert await asyncio.gather(*together) == ["second", 1, 2, 3]

    asyncio.run(callers())


def test_who_must_be_alone_waits_for_all_lanes_and_lets_nobody_join(lanes: tuple[Beside, ModelThreads]) -> None:
    work, threads = lanes
    work.go = {name: threading.Event() for name in ("left", "right")}
    order: list[str] = []

    async def callers() -> None:
        both = await at_once(threads, ["left", "right"])
        await until(work, 2)
        call = asyncio.create_task(threads.call(lambda: order.append("call")))
        later = asyncio.create_task(threads.ask("a", "later"))
        work.go["left"].set()
        await both[0]
        await asyncio.sleep(0.05)
        assert not call.done() and not order and len(work.begun) == 2  # the right one still computes
        work.go["right"].set()
        await asyncio.gather(call, later, *both)
        assert order == ["call"] and work.begun[-1][0] == ["later"]

    asyncio.run(callers())


def test_who_asks_alone_never_waits_for_company(lanes: tuple[Beside, ModelThreads]) -> None:
    work, threads = lanes
    threads._wait_seconds = 60  # who waited would be late

    async def caller() -> None:
        for i in range(6):
            assert await asyncio.wait_for(threads.ask("a", i), 10) == i

    asyncio.run(caller())
    assert work.begun == [([i], 6) for i in range(6)]


def test_a_job_that_waited_long_gets_a_gap_between_batches_that_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gamma_kg.serve.turn.PATIENCE", 0.02)
    turn, done = Turn(), threading.Event()
    first, second = turn.of_a_person(shared=True), turn.of_a_person(shared=True)
    first.__enter__()
    second.__enter__()  # two batches at once
    job = threading.Thread(target=lambda: _take(turn.of_a_job(), [], "job") or done.set())
    job.start()
    while not turn.must_wait(shared=True):  # the job has lost its patience: no third joins the two
        pass
    first.__exit__(None, None, None)
    assert not done.wait(0.05)
    second.__exit__(None, None, None)
    assert done.wait(10)
    job.join()


def test_a_job_gives_way_to_a_person() -> None:
    turn, order = Turn(), []
    with turn.of_a_job():
        job = threading.Thread(target=lambda: _take(turn.of_a_job(), order, "job"))
        person = threading.Thread(target=lambda: _take(turn.of_a_person(), order, "person"))
        job.start()
        person.start()
        while turn._people == 0:
            pass
    person.join()
    job.join()
    assert order == ["person", "job"]


def test_a_part_of_the_threads_holds_for_one_thread_and_for_a_while() -> None:
    all_of_them, seen = engine_threads(), []
    with limited_threads(all_of_them + 3):
        other = threading.Thread(target=lambda: seen.append(engine_threads()))
        other.start()
        other.join()
        with limited_threads(1):
            assert engine_threads() == 1
        assert engine_threads() == all_of_them + 3
    assert engine_threads() == all_of_them and seen == [all_of_them]


def _take(turn: Any, order: list[str], who: str) -> None:
    with turn:
        order.append(who)
