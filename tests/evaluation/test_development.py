import json

import numpy as np
import pytest
import torch

from gamma_kg import KnowledgeGraph
from gamma_kg.data.benchmark import load_benchmark
from gamma_kg.evaluation import development
from gamma_kg.evaluation.development import develop, split_file
from gamma_kg.evaluation.reversal import one_way_relations, reversal_rate
from gamma_kg.predicting.models import NamedModel, resolve_model


class Reversing:
    """Answers every query with the entities that stand at its other end."""

    def scores(self, kg, source_Q, relation_Q, memory=None, local="off"):
        scores = torch.zeros(len(source_Q), kg.num_entities)
        for row, (source, relation) in enumerate(zip(source_Q.tolist(), kg.inverse(relation_Q).tolist(), strict=True)):
            scores[row, kg.answers(source, relation)] = 1.0
        return scores


@pytest.fixture
def tree(tmp_path):
    """A hierarchy and a symmetric relation; the last two parents are asked for."""
    parents = [f"n{i}\tparent\tn{(i - 1) // 2}\n" for i in range(1, 15)]
    married = [f"n{a}\tmarried\tn{b}\n" for a, b in ((1, 2), (2, 1), (3, 4), (4, 3), (5, 6), (6, 5))]
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "train.txt").write_text("".join(parents[:-2] + married[:-1]))
    (folder / "valid.txt").write_text(parents[4] + married[-1])
    (folder / "test.txt").write_text("".join(parents[-2:]))
    return folder


def test_only_relations_that_never_hold_both_ways_are_one_way(tree):
    split = load_benchmark(str(tree)).split("valid")
    kg = KnowledgeGraph(split.graph, split.entities, split.relations)
    found = one_way_relations(kg)
    assert found[kg.relation_id("parent")] and found[2 + kg.relation_id("parent")]
    assert not found[kg.relation_id("married")]


def test_an_answer_that_turns_a_fact_around_counts_and_others_do_not(tree):
    split = load_benchmark(str(tree)).split("valid")
    # Two queries of the hierarchy: the parent of n5, which has children to be mistaken for it, and a child of n2.
    assert reversal_rate(Reversing(), split) == (1.0, 2)
    share, asked = reversal_rate(resolve_model("frequency").predictor, split)
    assert asked == 2 and share < 1


def test_a_file_is_split_once_and_always_the_same_way(tmp_path):
    path = tmp_path / "made.txt"
    path.write_text("".join(f"e{i}\tr{i % 3}\te{i + 1}\n" for i in range(50)))
    folder = split_file(path, tmp_path / "splits", 0.1)
    parts = {part: (folder / f"{part}.txt").read_text().splitlines() for part in ("train", "valid", "test")}
    assert [len(lines) for lines in parts.values()] == [40, 5, 5]
    assert sorted(line for lines in parts.values() for line in lines) == sorted(path.read_text().splitlines())
    (folder / "train.txt").write_text("kept\n")
    split_file(path, tmp_path / "splits", 0.1)
    assert (folder / "train.txt").read_text() == "kept\n"


def test_the_suite_ranks_each_set_once_and_says_what_is_not_at_hand(tree, tmp_path, monkeypatch):
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "own.txt").write_text("".join(f"e{i}\tr\te{i + 1}\n" for i in range(30)))
    plan = {
        "triples": 2,
        "seed": 0,
        "groups": [
            {"name": "small", "sets": [str(tree), "nowhere"]},
            {"name": "own", "files": ["own", "absent"], "share": 0.1},
        ],
        "reversal": {"sets": [str(tree)]},
    }
    monkeypatch.setattr(development, "suite", lambda: plan)
    model = NamedModel("reversing", "0123456789abcdef0123", Reversing(), "")
    found = develop(model, tmp_path / "out", graphs=tmp_path / "graphs")
    assert set(found.mrr) == {str(tree), "own"} and found.absent == ["nowhere", "absent"]
    assert found.mean == pytest.approx(np.mean(list(found.mrr.values())))
    # A second time nothing is scored.
    monkeypatch.setattr(Reversing, "scores", None)
    again = develop(model, tmp_path / "out", graphs=tmp_path / "graphs")
    assert again.mrr == found.mrr and again.reversed == found.reversed
    kept = json.loads((tmp_path / "out" / "0123456789abcdef" / "tree.valid.json").read_text())
    assert kept["split"] == "valid" and kept["filter"] == "own"


def test_the_suite_is_wide_enough():
    plan = development.suite()
    sets = [name for group in plan["groups"] for name in (*group.get("sets", ()), *group.get("files", ()))]
    assert len(sets) >= 16 and 2 * plan["triples"] >= 300
