"""Jobs: cancelling, the queue's limit, and an end in good order; verdicts outlive the server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gamma_kg import DataError, Gamma, KnowledgeGraph
from gamma_kg.serve.batching import QueueFullError, StoppingError
from gamma_kg.serve.jobs import Job, Jobs
from gamma_kg.serve.predictors import JobPredictor
from gamma_kg.serve.review import Review
from gamma_kg.serve.turn import Turn


def wait_for(is_so: Callable[[], bool]) -> None:
    for _ in range(1000):
        if is_so():
            return
        time.sleep(0.005)
    raise AssertionError("it did not happen")


def endless(job: Job) -> None:
    done = 0
    while True:
        job.progress(done, 1000)
        done += 1
        time.sleep(0.001)


def test_a_running_job_is_cancelled_and_a_waiting_one_never_starts() -> None:
    jobs = Jobs(limit=2)
    first, second = (jobs.start("complete", "g", "", endless) for _ in range(2))
    wait_for(lambda: first.done > 3)
    with pytest.raises(QueueFullError, match="2 jobs"):
        jobs.start("complete", "g", "", endless)
    jobs.cancel(second)
    assert second.state == "cancelled" and not second.cancelling
    jobs.cancel(first)
    wait_for(lambda: first.has_ended)
    assert first.state == "cancelled" and second.done == 0
    jobs.stop(0)


def test_a_cancelled_job_says_so_while_it_is_in_the_middle_of_something() -> None:
    jobs, may_go_on = Jobs(limit=1), threading.Event()
    job = jobs.start("complete", "g", "", lambda job: may_go_on.wait(10) and job.check())
    wait_for(lambda: job.state == "running")
    jobs.cancel(job)
    assert job.cancelling and job.state == "running"
    may_go_on.set()
    wait_for(lambda: job.has_ended)
    assert job.state == "cancelled" and not job.cancelling
    jobs.stop(0)


def test_at_the_end_a_running_job_may_finish_and_nothing_new_starts() -> None:
    jobs, may_end = Jobs(limit=4), threading.Event()
    running = jobs.start("complete", "g", "", lambda job: may_end.wait(10))
    waiting = jobs.start("complete", "g", "", endless)
    wait_for(lambda: running.state == "running")
    threading.Timer(0.1, may_end.set).start()
    jobs.stop(grace_seconds=10)
    assert running.state == "done" and waiting.state == "cancelled"
    with pytest.raises(StoppingError):
        jobs.start("complete", "g", "", endless)


def test_a_job_that_does_not_end_in_time_is_cancelled() -> None:
    jobs = Jobs(limit=4)
    job = jobs.start("complete", "g", "", endless)
    wait_for(lambda: job.state == "running")
    jobs.stop(grace_seconds=0.05)
    assert job.state == "cancelled"


def test_a_failure_inside_a_job_does_not_stop_the_next() -> None:
    jobs = Jobs(limit=4)

    def fail(job: Job) -> None:
        raise RuntimeError("secret")

    failed, after = jobs.start("complete", "g", "", fail), jobs.start("calibrate", "g", "", lambda job: "fine")
    wait_for(lambda: after.has_ended)
    assert failed.state == "failed" and "secret" not in (failed.error or "") and after.result == "fine"
    jobs.stop(1)


def test_verdicts_with_a_file_outlive_the_server(tmp_path: Path) -> None:
    path = tmp_path / "reviews" / "demo.jsonl"
    review = Review(path)
    review.decide(("a", "r", "b\n"), "accepted", 0.5)
    review.decide(("a", "r", "c"), "rejected")
    review.decide(("a", "r", "c"), None)
    with pytest.raises(DataError, match=r"another process .* is at work on it"):
        Review(path)  # two servers on one folder would write over each other's verdicts
    review.close()
    again = Review(path)
    assert again.facts("accepted") == [(("a", "r", "b\n"), 0.5)] and again.facts("rejected") == []
    again.close()
    path.write_text("not JSON\n")
    for _ in range(2):
        with pytest.raises(DataError, match="line 1"):
            Review(path)


def test_a_job_answers_from_neighbourhoods_where_its_model_does(small_gamma: Gamma, family: KnowledgeGraph) -> None:
    """Else its probabilities would be those that were fitted to answers from whole graphs."""
    job = JobPredictor(small_gamma, Turn(), lambda: None)
    assert job.triples(family, 7) == small_gamma.triples(family, 7) == 7
