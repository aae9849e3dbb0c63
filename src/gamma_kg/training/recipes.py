"""What training on one graph has in common, whether it is called adapting or fine-tuning."""

from __future__ import annotations

from pathlib import Path

from gamma_kg.graph.linked import NEAR
from gamma_kg.training.config import Phase, TrainConfig
from gamma_kg.training.loop import Counters
from gamma_kg.training.run_folder import RunFolder

# A graph with more entities is trained on in subgraphs: what a step costs goes by queries × entities.
WHOLE_UP_TO = 3000
# From weights that know many graphs to one that they were not trained on.
ONE_GRAPH_RATE = 7e-4
# Facts × entities of one look while training, and of the judgement: what ranking costs goes by these. With a fixed
# number of facts a graph of 29,000 entities would spend its five minutes on looking.
WATCHED_ROWS, JUDGED_ROWS = 1_000_000, 3_000_000
# Fewer say nothing.
FEWEST_FACTS = 20


def affordable(rows: int, num_entities: int, most: int) -> int:
    """How many facts are ranked, both ways, on a graph of that many entities."""
    return min(most, max(FEWEST_FACTS, rows // max(num_entities, 1)))


def one_graph_phase(num_entities: int) -> Phase:
    """Whole graphs as long as they are small, else connected subgraphs."""
    whole = num_entities <= WHOLE_UP_TO
    sampling = {"sampler": "full"} if whole else {"sampler": "subgraph", "entities": (500, 2000), "max_triples": 30_000}
    batch = {"batch_size": 16, "negatives": 512, "max_answers": 2, "drop_chance": 0.0, "near": NEAR}
    return Phase.parse({**sampling, **batch})


def weights_to_judge(folder: RunFolder, count: Counters, config: TrainConfig) -> Path:
    """The best weights by the watched facts, or the last where no look found better than the start.

    A few dozen watched facts often miss a gain that more facts show; it is the judgement that keeps harm away.
    """
    if count.best_step > 0 or count.step == 0:
        return folder.best_path
    return folder.checkpoint_path(count.step, average=config.ema_decay > 0)
