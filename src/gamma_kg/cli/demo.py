"""`gamma demo`: the bundled graph and weights, a few predictions by name, and what to try next."""

from __future__ import annotations

# One held-out fact per line, chosen for variety: symmetric, inverse, composed, hierarchical, shared by neighbours.
SHOWN = (
    ("Kenya", "borders", "Tanzania"),
    ("Nairobi", "capital of", "Kenya"),
    ("Uganda", "on continent", "Africa"),
    ("Finnish", "language family", "Uralic languages"),
    ("Slovakia", "borders", "Hungary"),
    ("Togo", "currency", "West African CFA franc"),
    ("Laos", "member of", "ASEAN"),
    ("Mekong", "flows through", "Laos"),
)

RANKED = 20


def demo() -> None:
    """Find true facts that were held out of a small graph of countries."""
    from rich.console import Console
    from rich.table import Table

    from gamma_kg import Gamma
    from gamma_kg.demo import demo_graph, demo_split
    from gamma_kg.evaluation.evaluate import rank_split
    from gamma_kg.evaluation.metrics import rank_metrics

    console = Console()
    gamma, kg, split = Gamma.from_pretrained(), demo_graph(), demo_split()
    console.print(
        f"A graph of {kg.num_triples:,} facts about {kg.num_entities:,} countries, cities, languages, rivers … in "
        f"{kg.num_relations} relations.\nThe model has never seen it, nor any of these names. {len(split.queries)} "
        "true facts were left out of the graph. Does it find them?\n"
    )
    table = Table("question", "true answer, left out", "its rank", "the model's first two answers")
    for head, relation, tail in SHOWN:
        # Not all answers: where this graph was calibrated, each of them costs a question from its other end.
        answers = gamma.predict(kg, head=head, relation=relation, top_k=RANKED)
        names = [answer.name for answer in answers]
        rank = str(names.index(tail) + 1) if tail in names else f"after {RANKED}"
        first = ", ".join(f"{a.name} ({a.probability:.0%})" for a in answers[:2])
        table.add_row(f"{head} [dim]{relation}[/dim] ?", tail, rank, first)
    console.print(table)

    summary = Table(f"all {2 * len(split.queries)} questions", "right answer first", "among first ten", "MRR")
    for name, model in (("this model", gamma), ("the same, untrained", Gamma.from_config(gamma.config))):
        metrics = rank_metrics(rank_split(model, split).published_rank())
        summary.add_row(name, f"{metrics['hits@1']:.0%}", f"{metrics['hits@10']:.0%}", f"{metrics['mrr']:.3f}")
    console.print(f"\nEach of the {len(split.queries)} facts, asked for its head and for its tail:", summary)
    console.print(
        "\nTry next:\n"
        '  gamma predict demo --head Kenya --relation "member of"     complete a fact\n'
        "  gamma predict demo --head Kenya --tail Africa              find a relation\n"
        "  gamma predict facts.tsv --head … --relation …              on a graph of yours\n"
        "  gamma serve demo                                           in a browser",
        highlight=False,
        markup=False,
    )
