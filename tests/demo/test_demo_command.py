"""The bundled graph and weights together: what a newcomer sees first must be true."""

import subprocess
import sys

import pytest
import torch

from gamma_kg import Gamma
from gamma_kg.cli.demo import SHOWN, demo
from gamma_kg.demo import demo_graph, demo_split
from gamma_kg.evaluation.evaluate import rank_split
from gamma_kg.evaluation.metrics import rank_metrics


def test_the_bundled_model_finds_far_more_held_out_facts_than_an_untrained_one() -> None:
    split, gamma = demo_split(), Gamma.from_pretrained()
    trained, untrained = (
        rank_metrics(rank_split(model, split).published_rank()) for model in (gamma, Gamma.from_config(gamma.config))
    )
    assert trained["mrr"] > 0.6 and trained["mrr"] > 4 * untrained["mrr"]


def test_the_bundled_weights_say_what_they_are_and_where_they_come_from() -> None:
    published, gamma = Gamma.from_pretrained("gamma-1"), Gamma.from_pretrained()
    assert published.num_parameters == 359_298 and published.config.branches == ("complex", "split-complex")
    assert gamma.config.branches == (*published.config.branches, "real") and gamma.config.relation_graph == "pairs"
    made = gamma.provenance
    assert made["samples"] > 0 and made["train_config"] and len(made["data"]) == 19 and made["selection"]["mean"] > 0.37


def test_shown_facts_are_held_out_of_the_graph() -> None:
    kg, split = demo_graph(), demo_split()
    held_out = {(split.entities[h], split.relations[r], split.entities[t]) for h, r, t in split.queries.tolist()}
    assert set(SHOWN) <= held_out
    for head, relation, tail in SHOWN:
        answers = kg.answers(kg.entity_id(head), kg.relation_id(relation))
        assert not torch.isin(torch.tensor(kg.entity_id(tail)), answers)


def test_the_demo_ends_with_four_commands(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    demo()
    out = capsys.readouterr().out
    assert out.count("\n  gamma ") == 4 and "gamma serve demo" in out.splitlines()[-1] and "untrained" in out
    assert all(tail in out for _, _, tail in SHOWN[:3])


def test_a_script_that_holds_its_graph_to_the_end_ends_in_silence() -> None:
    script = (
        "from gamma_kg import Gamma\nfrom gamma_kg.demo import demo_graph\n"
        "kg, model = demo_graph(), Gamma.from_pretrained()\n"
        "print(model.predict(kg, head='Nairobi', relation='capital of', top_k=1)[0].name)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Kenya\n", "")
