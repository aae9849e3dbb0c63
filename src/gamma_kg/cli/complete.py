"""`gamma complete`: the most probable missing facts of a whole graph."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gamma_kg.cli.fitting import fit
from gamma_kg.cli.options import (
    DeviceOption,
    LocalOption,
    MemoryOption,
    ModelOption,
    RayOption,
    RulesOption,
    WorkersOption,
)
from gamma_kg.cli.progress_bar import progress_bar
from gamma_kg.cli.reading import GraphArgument, Reading, reads_graph
from gamma_kg.cli.saying import say
from gamma_kg.errors import ConfigError
from gamma_kg.io.shown import shown

if TYPE_CHECKING:
    from gamma_kg.complete import Fact
    from gamma_kg.distributed.parts import Parts

# Fitting probabilities may take this part of a budget, so that facts are found too.
CALIBRATION_SHARE = 0.3
# What is kept of a budget for writing: the facts, and a page with their reasons.
WRITING_SHARE = 0.05
REVIEW_SHARE = 0.07
# Nobody looks through twenty proposals for one that holds, unless they say so.
LEAST_PROBABILITY = 0.05
UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600}
SHOWN = 20


@reads_graph
def complete(
    graph: GraphArgument,
    reading: Reading,
    out: Annotated[Path | None, typer.Option(help="File for the facts: .tsv .csv .jsonl .parquet .nt or .ttl.")] = None,
    assert_: Annotated[
        bool, typer.Option("--assert", help="RDF: write the facts themselves too, not only statements about them.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object per fact on stdout.")] = False,
    relations: Annotated[
        list[str] | None, typer.Option("--relations", help="Only this relation; may be repeated.")
    ] = None,
    exclude_relation: Annotated[
        list[str] | None, typer.Option("--exclude-relation", help="Not this relation; may be repeated.")
    ] = None,
    type_: Annotated[
        str | None, typer.Option("--type", help="Only facts about things of this type or of one below it.")
    ] = None,
    top: Annotated[int, typer.Option("--top", "--top-k", "-k", help="How many facts.")] = 100,
    min_probability: Annotated[
        list[str] | None,
        typer.Option(
            help="Leave out what is less probable: 0.2, or for one relation NAME=0.2; may be repeated. "
            f"Where probabilities are fitted it is {LEAST_PROBABILITY} unless you say otherwise, or nothing reaches it."
        ),
    ] = None,
    max_per_relation: Annotated[
        int | None, typer.Option(help="At most so many facts of one relation; else a fifth, if others fill the list.")
    ] = None,
    min_cases: Annotated[
        int | None,
        typer.Option(
            help="Leave out what no reason speaks for: a rule of the graph with so many cases, which surely holds in "
            "a quarter. 3 unless you say otherwise; 0 lists all."
        ),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Time to use in all, such as 90s, 10m or 2h; the same command goes on later.")
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            help="Fit probabilities to this graph by hiding some of its facts, once: they are kept. A probability is "
            "how often such a proposal was one of the hidden facts."
        ),
    ] = True,
    review: Annotated[
        Path | None, typer.Option(help="Also write a page (.html) to accept and reject the facts, with their reasons.")
    ] = None,
    rules: RulesOption = True,
    model: ModelOption = None,
    memory: MemoryOption = None,
    device: DeviceOption = "cpu",
    local: LocalOption = "auto",
    ray: RayOption = None,
    workers: WorkersOption = None,
) -> None:
    """Propose the most probable missing facts of the whole graph. Can be stopped with Ctrl-C and taken up again."""
    started = time.monotonic()  # a budget is for all of it, the loading of libraries too
    from gamma_kg.complete import complete as complete_graph
    from gamma_kg.complete.choice import Choice
    from gamma_kg.errors import DataError
    from gamma_kg.io.output import check_file
    from gamma_kg.io.rows import check_ending, identified, write_json_lines, write_rows
    from gamma_kg.predicting.answer_options import AnswerOptions
    from gamma_kg.predicting.models import resolve_model
    from gamma_kg.predicting.switch import basis_of_many
    from gamma_kg.rules.reasons import MIN_CASES

    kept = WRITING_SHARE + (0.0 if review is None else REVIEW_SHARE)
    seconds = None if budget is None else parse_budget(budget) * (1 - kept)
    if out is not None:
        check_ending(out, asserted=assert_)
        check_file(out, (graph, model))
    elif assert_:
        raise DataError("--assert is for files of RDF: give --out FILE (.nt or .ttl)")
    if review is not None and review.suffix != ".html":
        raise ConfigError(f"--review: wanted a file that ends in .html, got {review}")
    if review is not None:
        check_file(review, (graph, model))
    if ray is not None and (out is None or budget is not None):
        raise DataError("--ray wants --out FILE, and no --budget: it can be stopped and taken up again")
    if ray is not None and device != "cpu":
        raise DataError(f"--ray computes on CPUs, a core for each worker: leave out --device {device}")
    how = AnswerOptions(rules=rules, memory=memory, local=local)
    bounds = parse_bounds(min_probability or [])
    kg = reading.graph(graph)
    wanted: dict[str, Any] = {
        "relations": relations,
        "exclude_relations": exclude_relation or (),
        "type": type_,
        "top": top,
        "min_probability": bounds,
        "max_per_relation": max_per_relation,
        "min_cases": MIN_CASES if min_cases is None else min_cases,
    }
    Choice.of(kg, **wanted)  # a wrong name is told before anything is computed
    gamma = resolve_model(model, device).predictor

    def left() -> float | None:
        return None if seconds is None else max(0.0, seconds - (time.monotonic() - started))

    if calibrate and gamma.calibration(kg, local, rules) is None:
        to_fit = left()
        fit(gamma, kg, local, rules, None if to_fit is None else CALIBRATION_SHARE * to_fit)
    is_fitted = gamma.calibration(kg, local, rules) is not None
    if is_fitted and "" not in bounds:  # else the numbers only put the facts in order
        wanted["likely_from"] = LEAST_PROBABILITY
    to_ask = left()
    journal = None if out is None else out.with_name(out.name + ".progress")
    parts: Parts | None = None
    if ray is not None and out is not None:
        from gamma_kg.cli.on_ray import complete_on_ray

        found, parts = complete_on_ray(graph, kg, model, gamma, out, ray, workers, how, **wanted)
    else:
        with progress_bar("completing", "queries", to_ask) as progress:
            found = complete_graph(
                gamma,
                kg,
                **wanted,
                rules=rules,
                memory=memory,
                local=local,
                budget_seconds=to_ask,
                journal=journal,
                progress=progress,
                on_interrupt="return",
            )
    rows = [{**asdict(fact), "local": gamma.triples(kg, local)} for fact in found.facts]
    if out is not None:
        write_rows(out, rows, kg, asserted=assert_)
        if parts is not None:
            parts.remove()
    if review is not None:
        from gamma_kg.complete.review import write_review

        write_review(review, kg, found.facts, title=graph)
    if json_ and out is None:
        write_json_lines(sys.stdout, identified(rows, kg))
    elif out is None and review is None:
        print_facts(found.facts[:SHOWN])
    if found.queries_in_all is None:
        asked = f"after {found.seconds:.0f} s it was not yet chosen what to ask"
    else:
        asked = f"{found.queries_asked:,} of {found.queries_in_all:,} promising queries asked in {found.seconds:.0f} s"
    where = "".join(f" in {path}" for path in (out, review) if path is not None)
    if found.is_finished:
        rest = ""
    elif found.queries_in_all is None:
        rest = "" if found.was_interrupted else "; give it more time"
    elif out is None:
        rest = "; with --out FILE the same command would go on from here"
    else:
        rest = "; the same command goes on from here"
    stopped = "stopped; " if found.was_interrupted else ""
    on = basis_of_many(kg, gamma.triples(kg, local))
    say(f"{stopped}{len(found.facts):,} facts{where}; {asked}, answered from {on}{rest}")
    if found.facts and is_fitted:
        say(f"by their probabilities, about {sum(fact.probability for fact in found.facts):.0f} of them should hold")
    is_short = found.queries_asked and len(found.facts) < top  # of what was asked; of nothing, nothing was left out
    least = bounds.get("", wanted.get("likely_from", 0.0))
    if found.facts and found.facts[0].probability < least:
        say(f"nothing is as probable as {least:.3g}: these are the likeliest; --min-probability 0 lists all")
    elif is_short and least > 0:
        say(f"what is less probable than {least:.3g} is left out; --min-probability 0 lists it too")
    if is_short and rules and (cases := wanted["min_cases"]):
        say(f"what no reason with {cases} cases speaks for is left out; --min-cases 0 lists it too")
    if found.was_interrupted:
        raise typer.Exit(130)


def parse_bounds(texts: list[str]) -> dict[str, float]:
    """Bounds by relation from "0.2" (all, under the name "") and "NAME=0.2"."""
    bounds: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            bounds[name] = float(number)
        except ValueError:
            raise ConfigError(f"--min-probability: wanted a number or NAME=NUMBER, got {text!r}") from None
    return bounds


def parse_budget(text: str) -> float:
    """Seconds meant by "90s", "10m", "2h" or a plain number."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", text.lower())
    if match is None or float(match[1]) == 0:
        raise ConfigError(f"--budget: wanted a time such as 90s, 10m or 2h, got {text!r}")
    return float(match[1]) * UNIT_SECONDS[match[2] or "s"]


def print_facts(facts: list[Fact]) -> None:
    """A table for people."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="Most probable missing facts", title_justify="left")
    for name in ("", "head", "relation", "tail", "probability"):
        table.add_column(name, justify="right" if name in ("", "probability") else "left", overflow="fold")
    for rank, fact in enumerate(facts, 1):
        names = (escape(shown(name)) for name in (fact.head, fact.relation, fact.tail))
        table.add_row(str(rank), *names, f"{fact.probability:.1%}")
    Console().print(table if facts else "No missing facts found.")
