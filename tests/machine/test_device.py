"""Where a model computes: by name, with every tensor on one device, and the graph sent there once."""

from __future__ import annotations

import pytest
import torch
from typer.testing import CliRunner

from gamma_kg import ConfigError, Gamma, KnowledgeGraph
from gamma_kg.cli import app
from gamma_kg.complete import complete
from gamma_kg.logic.ask import ask
from gamma_kg.machine.device import choose_device
from gamma_kg.machine.memory import budget
from gamma_kg.nn.config import GammaConfig
from gamma_kg.predicting.models import resolve_model
from pretended_gpu import GPU, PretendedGpu, pretended_gpu

needs_no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")


@needs_no_gpu
def test_auto_is_the_cpu_where_there_is_no_gpu() -> None:
    assert choose_device("auto") == choose_device("cpu") == torch.device("cpu")


@needs_no_gpu
@pytest.mark.parametrize("name", ["cuda", "cuda:3"])
def test_a_gpu_that_is_not_there_is_refused_with_what_to_do(name: str) -> None:
    with pytest.raises(ConfigError, match=f"'{name}' was asked for, but torch finds 0 GPUs here: leave it out"):
        Gamma.from_pretrained(device=name)


@pytest.mark.parametrize("name", ["gpu", "meta", "mps"])
def test_a_device_that_gamma_does_not_compute_on_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="wanted auto, cpu, cuda or cuda:0"):
        resolve_model("frequency", name)


def test_a_gpu_comes_with_its_number() -> None:
    """Two names of one device would look like two devices, and all would be sent a second time."""
    with pretended_gpu():
        assert choose_device("auto") == choose_device("cuda") == choose_device("cuda:0") == GPU


def test_memory_is_that_of_the_device() -> None:
    with pretended_gpu():
        assert budget(None, GPU) == (1 << 30) // 4
        assert budget("1GB", GPU) == 1 << 30


@pytest.mark.parametrize(
    "command",
    [
        "predict demo -h Ann -r mother", "explain demo -h Ann -r mother -t Bob", "complete demo", "ask demo [1]",
        "evaluate nl-0", "evaluate nl-0 --task queries", "select run", "serve demo", "mcp demo",
        "pretrain paper", "finetune nl-0", "ablate ablate-parameters", "adapt demo", "develop",
    ],
)  # fmt: skip
@needs_no_gpu
def test_every_command_that_computes_refuses_a_gpu_that_is_not_there(command: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.txt").write_text("a\tr\tb\n")
    words = [str(tmp_path) if word == "nl-0" else word for word in command.split()]
    found = CliRunner().invoke(app, [*words, "--device", "cuda"])
    assert isinstance(found.exception, ConfigError), found.output
    assert "torch finds 0 GPUs here" in str(found.exception)


@pytest.fixture
def on_both(small_config: GammaConfig) -> tuple[Gamma, Gamma]:
    return Gamma.from_config(small_config, seed=3), Gamma.from_config(small_config, seed=3)


def times_sent(gpu: PretendedGpu, tensor: torch.Tensor) -> int:
    return sum(sent.data_ptr() == tensor.data_ptr() for sent in gpu.sent)


@pytest.mark.parametrize("local", ["off", 6])
def test_answers_are_the_same_on_a_gpu(on_both: tuple[Gamma, Gamma], family: KnowledgeGraph, local: str | int) -> None:
    here, there = on_both
    queries = [("Ann", "mother of", None), (None, "father of", "Finn"), ("Eve", None, "Gus")]
    expected = dict(here.predict_many(family, queries, local=local))
    with pretended_gpu():
        found = dict(there.to("cuda").predict_many(family, queries, local=local))
    assert there.model.score.out.weight.device == GPU
    assert [[p.name for p in found[q]] for q in range(3)] == [[p.name for p in expected[q]] for q in range(3)]
    for q in range(3):
        torch.testing.assert_close([p.score for p in found[q]], [p.score for p in expected[q]], rtol=0, atol=1e-5)


@pytest.mark.parametrize("local", ["off", 6])
def test_reasons_are_the_same_on_a_gpu(on_both: tuple[Gamma, Gamma], family: KnowledgeGraph, local: str | int) -> None:
    here, there = on_both
    fact = {"head": "Dan", "relation": "married to", "tail": "Ann"}
    expected = here.explain(family, **fact, local=local)
    with pretended_gpu():
        found = there.to("cuda").explain(family, **fact, local=local)
    assert [path.steps for path in found.paths] == [path.steps for path in expected.paths] != []
    assert [fact.tail for fact in found.facts] == [fact.tail for fact in expected.facts] != []
    assert found.score == pytest.approx(expected.score, abs=1e-5)


def test_steps_and_proposals_are_the_same_on_a_gpu(on_both: tuple[Gamma, Gamma], family: KnowledgeGraph) -> None:
    here, there = on_both
    question = "SELECT ?x WHERE { <Ann> <mother of>/<sibling of> ?x }"
    answers, facts = ask(family, question, here), complete(here, family, top=9).facts
    with pretended_gpu():
        there.to("cuda")
        answers_there = ask(family, question, there)
        facts_there = complete(there, family, top=9).facts
    # Some are as likely as others: their order may hang on the last digit.
    likely, likely_there = ({a.name: a.probability for a in found} for found in (answers, answers_there))
    assert likely_there == pytest.approx(likely, abs=1e-6) and likely
    assert [f.probability for f in facts_there] == pytest.approx([f.probability for f in facts], abs=1e-6)


def test_the_graph_is_sent_to_a_gpu_once(on_both: tuple[Gamma, Gamma], family: KnowledgeGraph) -> None:
    """By prediction and explanation together, however many facts are taken out of it."""
    _, gamma = on_both
    with pretended_gpu() as gpu:
        gamma.to("cuda")
        gpu.sent.clear()
        for _ in range(2):
            gamma.predict(family, head="Ann", relation="mother of")
            gamma.explain(family, head="Bob", relation="sibling of", tail="Cleo")
        relation_graph = family.relation_graph_as(gamma.config.relation_graph)
        assert times_sent(gpu, family.edges.neighbour) == times_sent(gpu, relation_graph.neighbour) == 1
