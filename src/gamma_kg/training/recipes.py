"""What training on one graph has in common, whether it is called adapting or fine-tuning."""

from __future__ import annotations

from gamma_kg.graph.linked import NEAR
from gamma_kg.training.config import Phase

# A graph with more triples is trained on in subgraphs, so that a step stays cheap on a CPU.
WHOLE_UP_TO = 20_000


def one_graph_phase(num_triples: int) -> Phase:
    """Whole graphs as long as they are small, else connected subgraphs."""
    whole = num_triples <= WHOLE_UP_TO
    sampling = (
        {"sampler": "full"} if whole else {"sampler": "subgraph", "entities": (1000, 6000), "max_triples": 60_000}
    )
    batch = {"batch_size": 16, "negatives": 512, "max_answers": 2, "drop_chance": 0.0, "near": NEAR}
    return Phase.parse({**sampling, **batch})
