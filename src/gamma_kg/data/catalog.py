"""The benchmark graphs by name. `catalog.toml` has the facts; this file reads them into checked records."""

from __future__ import annotations

import functools
import os
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from gamma_kg.errors import DataError, did_you_mean

GROUPS = ("inductive-er", "inductive-e", "transductive")
PRETRAINING = ("fb15k237", "wn18rr", "codex-m")


@dataclass(frozen=True)
class Protocol:
    """Which graph is seen and which triples count as known, for the splits "valid" and "test".

    Validation knows the graph and its own triples: choosing never reads a test triple. The published evaluation
    filters validation by test triples too where graph and files are shared; `published_filter` has where it differs.
    """

    name: str
    graph: Mapping[str, str]
    filter: Mapping[str, tuple[str, ...]]
    published_filter: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Download:
    """A download that becomes (a part of) one file of the common layout."""

    file: str
    urls: tuple[str, ...]
    member: str | None = None
    columns: str = "hrt"
    split: str = "tab"


@dataclass(frozen=True)
class FileFacts:
    """What is known of a file: its lines, its hash, and its lines at its origin where its bytes differ there."""

    lines: int
    sha256: str | None = None
    lines_at_origin: int | None = None


@dataclass(frozen=True)
class Dataset:
    """One row of the catalogue. `counts[split]` has entities, relations, triples and queries, as far as known."""

    slug: str
    name: str
    group: str
    protocol: Protocol
    licence: str
    downloads: tuple[Download, ...]
    files: Mapping[str, FileFacts]
    counts: Mapping[str, Mapping[str, int]]
    ultra_task: str = "both"
    """"tail" where ULTRA's README ranks tails only; the published figures of the paper fit both directions."""
    leakage: str = "related"
    leaked: int | None = None
    note: str = ""


@functools.cache
def catalog() -> Mapping[str, Dataset]:
    """All sets by slug, in the order of the paper's groups."""
    raw = tomllib.loads(resources.files(__package__).joinpath("catalog.toml").read_text("utf-8"))
    protocols = {
        name: Protocol(name, facts["graph"], _filters(facts["filter"]), _filters(facts.get("published_filter", {})))
        for name, facts in raw["protocols"].items()
    }
    return {slug: _dataset(slug, dict(facts), raw["origins"], protocols) for slug, facts in raw["sets"].items()}


def dataset(name: str) -> Dataset:
    """The set with this slug or paper name (case does not matter); an unknown name suggests the nearest ones."""
    known = catalog()
    by_folded = {key.casefold(): entry for entry in known.values() for key in (entry.name, entry.slug)}
    found = by_folded.get(name.casefold())
    if found is None:
        hint = did_you_mean(name, [*known, *(entry.name for entry in known.values())])
        raise DataError(f"no benchmark is named {name!r}{hint} `gamma datasets` lists all {len(known)}")
    return found


def in_group(group: str) -> list[Dataset]:
    """The sets of one of the paper's groups ("all": every one); pre-training graphs come with "transductive"."""
    if group == "all":
        return list(catalog().values())
    if group not in GROUPS:
        raise DataError(f"no group is named {group!r}{did_you_mean(group, GROUPS)}; groups: {', '.join(GROUPS)}, all")
    return [entry for entry in catalog().values() if entry.group == group]


def data_folder(option: str | Path | None = None) -> Path:
    """The folder with one sub-folder per set: the option, else GAMMA_DATA, else the user's cache folder."""
    chosen = option or os.environ.get("GAMMA_DATA")
    return Path(chosen).expanduser() if chosen else cache_folder()


def cache_folder() -> Path:
    """Where this user's benchmark files are kept when nothing else is said."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", "~/AppData/Local"))
    elif sys.platform == "darwin":
        base = Path("~/Library/Caches")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    return base.expanduser() / "gamma-kg" / "datasets"


def cached_files(entry: Dataset, folder: Path) -> list[str]:
    """Which of the set's files are in `folder`/slug."""
    return [name for name in entry.files if (folder / entry.slug / name).is_file()]


def _dataset(
    slug: str, facts: dict[str, Any], origins: Mapping[str, Any], protocols: Mapping[str, Protocol]
) -> Dataset:
    origin = origins[facts.pop("origin")]
    upstream = facts.pop("upstream", "")
    return Dataset(
        slug=slug,
        protocol=protocols[origin["protocol"]],
        licence=origin["licence"],
        downloads=tuple(_downloads(origin["downloads"], upstream)),
        files={name: _file_facts(entry) for name, entry in facts.pop("files").items()},
        **facts,
    )


def _filters(rows: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    return {split: tuple(parts) for split, parts in rows.items()}


def _downloads(rows: Iterable[Mapping[str, Any]], upstream: str) -> Iterable[Download]:
    for row in rows:
        fields = dict(row)
        fields["urls"] = tuple(url.replace("{upstream}", upstream) for url in row["urls"])
        if "member" in row:
            fields["member"] = row["member"].replace("{upstream}", upstream)
        yield Download(**fields)


def _file_facts(row: Mapping[str, Any]) -> FileFacts:
    return FileFacts(row["lines"], row.get("sha256"), row.get("at_origin", {}).get("lines"))
