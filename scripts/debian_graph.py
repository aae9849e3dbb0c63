"""The packages of a Debian machine as a graph of facts: a training graph that is unlike any encyclopedia.

apt-get update && python scripts/debian_graph.py debian.txt

Reads `apt-cache dumpavail`. Packages, source packages, sections, maintainers, priorities and tags are entities.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# Fields that list packages: alternatives ("a | b") count each, versions and architectures are dropped.
PACKAGES = (
    "Depends",
    "Pre-Depends",
    "Recommends",
    "Suggests",
    "Enhances",
    "Conflicts",
    "Breaks",
    "Replaces",
    "Provides",
)
LABELS = {"Source": "source", "Section": "section", "Maintainer": "maintainer", "Priority": "priority", "Tag": "tag"}
NAME = re.compile(r"^[a-z0-9][a-z0-9+.-]+")


def records(text: str) -> Iterator[dict[str, str]]:
    """The stanzas of dumpavail; a line that begins with a space goes on with the field before."""
    for stanza in text.split("\n\n"):
        fields: dict[str, str] = {}
        name = ""
        for line in stanza.splitlines():
            if line.startswith(" "):
                fields[name] += line
            else:
                name, _, value = line.partition(": ")
                fields[name] = value
        if "Package" in fields:
            yield fields


def facts(fields: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """All facts of one package."""
    package = fields["Package"]
    for field in PACKAGES:
        for part in re.split(r"[,|]", fields.get(field, "")):
            if match := NAME.match(part.strip()):
                yield package, field.lower(), match[0]
    for field, prefix in LABELS.items():
        values = fields.get(field, "").split(",") if field == "Tag" else [fields.get(field, "").partition(" (")[0]]
        for value in values:
            if value := " ".join(value.split()):
                # A tag names its facet (role::program): facets are relations of their own.
                facet = f"tag-{value.partition('::')[0]}" if field == "Tag" else prefix
                yield package, facet, f"{prefix}:{value}"


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(f"wanted one argument, the file to write; usage: {sys.argv[0]} debian.txt")
    text = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    found = dict.fromkeys(fact for fields in records(text) for fact in facts(fields))
    Path(sys.argv[1]).write_text("".join("\t".join(fact) + "\n" for fact in found), encoding="utf-8")
    print(f"{len(found):,} facts, {len({r for _, r, _ in found})} relations")


if __name__ == "__main__":
    main()
