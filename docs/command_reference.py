"""The command reference, written from the command line itself: `python docs/command_reference.py`."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from gamma_kg.cli import app


def command_reference() -> str:
    """Markdown with a section per command, and a table of its arguments and options."""
    parts = ["# Commands", "", "Made from the commands themselves; `gamma COMMAND --help` says the same.", ""]
    _describe(typer.main.get_command(app), "gamma", parts)
    return "\n".join(parts)


def _describe(command: Any, name: str, parts: list[str]) -> None:
    children = getattr(command, "commands", {})
    if name != "gamma":
        parts += [f"## `{name}`", "", inspect.cleandoc(command.help or ""), ""]
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [p for p in command.params if p.param_type_name == "option" and "--help" not in p.opts]
        usage = " ".join([name, *((p.metavar or p.name).upper() for p in arguments), "[OPTIONS]" if options else ""])
        if not children:
            parts += ["```text", usage.strip(), "```", ""]
        rows = [((p.metavar or p.name).upper(), p) for p in arguments]
        rows += [(", ".join([*p.opts, *p.secondary_opts]), p) for p in options]
        if rows:
            parts += ["| | what | default |", "|---|---|---|"]
            parts += [f"| `{label}` | {_cell(p.help)} | {_default(p)} |" for label, p in rows] + [""]
    for child_name, child in children.items():
        _describe(child, f"{name} {child_name}", parts)


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    default = parameter.default
    if callable(default) or default is None or default == () or default == [] or default is False:
        return ""
    return f"`{default}`"


if __name__ == "__main__":
    print(command_reference())
