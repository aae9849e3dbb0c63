"""What training on one graph has in common, whether it is called adapting or fine-tuning."""

from __future__ import annotations

from gamma_kg.graph.linked import NEAR
from gamma_kg.training.config import Phase

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
    batch = {
        "batch_size": 16,
        "negatives": 512,
        "max_answers": 2,
        "drop_chance": 0.0,
        "near": NEAR,
        "twinless_chance": 0.5,
    }
    return Phase.parse({**sampling, **batch})
