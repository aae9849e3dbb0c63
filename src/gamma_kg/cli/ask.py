"""`gamma ask`: a question with several steps, in SPARQL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gamma_kg.cli.fitting import fit
from gamma_kg.cli.options import DeviceOption, LocalOption, MemoryOption, RulesOption
from gamma_kg.cli.reading import GraphArgument, Reading, reads_graph
from gamma_kg.cli.saying import say

if TYPE_CHECKING:
    from gamma_kg.logic.ask import Answer, Step

# A probability below this is told as such.
LEAST_SHOWN = 0.0005


@reads_graph
def ask(
    graph: GraphArgument,
    question: Annotated[str, typer.Argument(help="SELECT ?x WHERE { … }, or a nested list as in the BetaE files.")],
    reading: Reading,
    top_k: Annotated[
        int | None, typer.Option("--top", "--top-k", "-k", help="How many answers; else LIMIT, else 10.")
    ] = None,
    only_new: Annotated[
        bool, typer.Option("--only-new", help="Leave out answers that follow from the graph as it is.")
    ] = False,
    why: Annotated[bool, typer.Option("--why", help="Explain each predicted step of each answer.")] = False,
    least: Annotated[
        float | None, typer.Option(help="Leave out answers that are less likely than this; else 0.005.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="A checkpoint or a public .pth file; else the bundled weights.")
    ] = None,
    logic: Annotated[str, typer.Option(help="How degrees are joined: product, godel or lukasiewicz.")] = "product",
    threshold: Annotated[
        float | None, typer.Option(help="Go on only from what belongs to a set by more than this.")
    ] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Fit probabilities to this graph first, once, as in `gamma predict`.")
    ] = False,
    json_lines: Annotated[bool, typer.Option("--json", help="One JSON object per answer, nothing else.")] = False,
    memory: MemoryOption = None,
    device: DeviceOption = "cpu",
    local: LocalOption = "auto",
    rules: RulesOption = True,
) -> None:
    """Answer a question whose conditions form a tree: triples, UNION, MINUS, FILTER NOT EXISTS, ^p, p/q, LIMIT.

    Names are those of the graph: <mother of>, "Ann", wd:Q5, or with a declared PREFIX. Each answer comes with its
    probability, whether it follows from the graph as it is or which predicted facts it rests on, and the best entity
    for every other variable.
    """
    from gamma_kg.errors import ConfigError
    from gamma_kg.logic.ask import WORTH_TELLING, worth_telling
    from gamma_kg.logic.ask import ask as answer
    from gamma_kg.logic.predicted import steps_of
    from gamma_kg.predicting.gamma import Gamma
    from gamma_kg.predicting.models import resolve_model

    least = WORTH_TELLING if least is None else least
    if not 0 <= least <= 1:
        raise ConfigError(f"--least is a probability in 0..1, got {least}")
    asked = _nested_list(question) if question.lstrip().startswith("[") else question
    gamma = resolve_model(model, device).predictor
    if not isinstance(gamma, Gamma):
        raise ConfigError(f"{model} can't answer questions with several steps: use a checkpoint or the bundled weights")
    steps = steps_of(gamma) if threshold is None else replace(steps_of(gamma), threshold=threshold)
    kg = reading.graph(graph)
    if calibrate and gamma.calibration(kg, local, rules) is None:
        fit(gamma, kg, local, rules, None)
    options: dict[str, Any] = {"top_k": top_k, "only_new": only_new, "why": why, "memory": memory, "local": local}
    options["rules"] = rules
    found = answer(kg, asked, gamma, logic=logic, steps=steps, **options)
    answers = worth_telling(found, least)
    if json_lines:
        for one in answers:
            print(json.dumps(asdict(one), ensure_ascii=False))
    elif answers or not found:
        print_answers(answers)
    if len(answers) < len(found):
        say(f"{len(found) - len(answers)} answers less likely than {_percent(least)} left out (--least 0 lists them)")


def _nested_list(text: str) -> Any:
    from gamma_kg.errors import DataError

    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"the question starts like a nested list, but is no JSON: {error}") from None


def print_answers(answers: Sequence[Answer]) -> None:
    """A table for people; below it, where asked for, why each predicted step is believed."""
    from rich.console import Console
    from rich.markup import escape as escape_markup
    from rich.table import Table

    from gamma_kg.io.shown import shown, shown_lines
    from gamma_kg.logic.ask import WORTH_TELLING

    def escape(text: str) -> str:
        return escape_markup(shown(text))

    variables = list(dict.fromkeys(name for found in answers for name in found.bindings))
    table = Table()
    table.add_column("", justify="right")
    table.add_column("answer", overflow="fold")
    table.add_column("probability", justify="right")
    table.add_column("follows from the graph", overflow="fold")
    for name in variables:
        table.add_column(escape(f"?{name}"), overflow="fold")
    for rank, found in enumerate(answers, 1):
        follows = "yes" if found.follows else f"if {_told(found.steps)}"
        against = [step for step in found.denied if step.probability >= WORTH_TELLING]
        follows = escape(f"{follows}, unless {_told(against)}" if _told(against) else follows)
        bound = [escape(found.bindings.get(name, "")) for name in variables]
        table.add_row(str(rank), escape(found.name), _percent(found.probability), follows, *bound)
    console = Console()
    console.print(table if answers else "No answer has a probability above zero.")
    for found in answers:
        for step in found.steps:
            if step.why is not None:
                console.print(f"\n[bold]{escape(found.name)}[/bold]")
                console.print(escape_markup(shown_lines(step.why.text())))


def _told(steps: Iterable[Step]) -> str:
    """The predicted facts among the steps."""
    return ", ".join(
        f"{step.head} «{step.relation}» {step.tail} ({_percent(step.probability)})" for step in steps if not step.known
    )


def _percent(probability: float) -> str:
    return "<0.1%" if 0 < probability < LEAST_SHOWN else f"{probability:.1%}"
