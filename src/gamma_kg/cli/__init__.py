"""The command `gamma`: one file per command. Errors a user can mend go to stderr in one line, with exit code 2."""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import version
from typing import Annotated

import typer

from gamma_kg.cli import (
    ablate,
    adapt,
    ask,
    average,
    bench,
    complete,
    convert,
    curve,
    datasets,
    demo,
    describe,
    develop,
    evaluate,
    explain,
    finetune,
    index,
    info,
    mcp,
    patterns,
    predict,
    pretrain,
    queries,
    report,
    select,
    serve,
    write_back,
)
from gamma_kg.cli.saying import be_quiet
from gamma_kg.cli.shortage import shortage
from gamma_kg.cli.standard_streams import forget, mend_streams
from gamma_kg.errors import GammaError
from gamma_kg.io.shown import shown
from gamma_kg.machine.address_space import spare, too_little

app = typer.Typer(
    name="gamma",
    help="Ranked missing facts on any knowledge graph, without training.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # `predict` and `explain` keep -h for --head, click leaves it to them; so what click advises is the first, --help.
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"gamma-kg {version('gamma-kg')}")
        raise typer.Exit


@app.callback()
def gamma(
    version_: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Results and errors only, no remarks.")] = False,
) -> None:
    """Ranked missing facts on any knowledge graph, without training."""
    be_quiet(quiet)


app.command("demo")(demo.demo)
app.command("predict")(predict.predict)
app.command("ask")(ask.ask)
app.command("describe")(describe.describe)
app.command("complete")(complete.complete)
app.command("write-back")(write_back.write_back)
app.command("explain")(explain.explain)
app.command("index")(index.index)
app.command("serve")(serve.serve)
app.command("mcp")(mcp.mcp)
app.command("info")(info.info)
app.command("convert")(convert.convert)
app.command("average")(average.average)
app.command("pretrain")(pretrain.pretrain)
app.command("adapt")(adapt.adapt)
app.command("finetune")(finetune.finetune)
app.command("select")(select.select)
app.command("develop")(develop.develop)
app.command("curve")(curve.curve)
app.command("ablate")(ablate.ablate)
app.add_typer(datasets.app, name="datasets")
app.command("evaluate")(evaluate.evaluate)
app.add_typer(queries.app, name="queries")
app.command("patterns")(patterns.patterns)
app.command("report")(report.report)
app.command("bench")(bench.bench)


def _say(message: Warning | str, *_where: object, **_more: object) -> None:
    """A warning as one line, as errors are; the line of Python that gave it helps nobody at a command line."""
    print(f"gamma: {shown(' '.join(str(message).split()))}", file=sys.stderr)


def main() -> None:
    """Run the command line."""
    mend_streams()
    refusal = None if {"--help", "--version"} & {*sys.argv} else too_little()
    if refusal is not None:
        print(f"gamma: {refusal}", file=sys.stderr)
        sys.exit(2)
    spare()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _say
            try:
                app()
            finally:
                sys.stdout.flush()  # here an error can still be told
    except GammaError as error:
        print(f"gamma: {shown(' '.join(str(error).split()))}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("gamma: stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        forget(sys.stdout)  # the reader of our output went away (as `head` does)
        sys.exit(141)
    except Exception as error:
        complaint = shortage(error)
        if complaint is None:
            raise
        forget(sys.stdout)
        print(f"gamma: {shown(complaint)}", file=sys.stderr)
        sys.exit(2)
