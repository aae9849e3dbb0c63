"""Training graphs of unlike worlds, made from data that npm packages and Python itself carry.

python scripts/package_graphs.py FOLDER

Writes pokemon.txt, minecraft.txt, dota.txt, warframe.txt, world.txt, browsers.txt, unicode.txt and code.txt: games with
recipes, evolutions and loot, countries, features of browsers, characters, and the classes of Python's library.
Wants npm and node.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

Fact = tuple[str, str, str]

# The versions that the bundled weights were trained with.
PACKAGES = {
    "pokemon": "pokemon-showdown@0.11.11",
    "minecraft": "minecraft-data@3.117.0",
    "dota": "dotaconstants@10.8.0",
    "warframe": "warframe-items@1.1269.87",
    "world": "world-countries@5.1.0",
    "browsers": "@mdn/browser-compat-data@8.1.9",
}
LONGEST_NAME = 60
MOST_FACTS = 40_000


def unpacked(package: str, folder: Path) -> Path:
    """The files of an npm package."""
    file = subprocess.run(["npm", "pack", "--silent", package], cwd=folder, capture_output=True, text=True, check=True)
    with tarfile.open(folder / file.stdout.split()[-1]) as archive:
        archive.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.is_dir())


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def about(thing: str, record: dict[str, Any], skip: Iterable[str] = ()) -> Iterator[Fact]:
    """What a record says of a thing: texts, lists of them, flags, and records with a name. Numbers are left out."""
    for field, value in record.items():
        if field in {*skip, "name", "id"}:
            continue
        match value:
            case True:
                yield thing, "is", field
            case str():
                yield thing, field, value
            case list():
                for part in value:
                    if isinstance(part, str):
                        yield thing, field, part
                    elif isinstance(part, dict):
                        yield from named(thing, field, part)
            case dict():
                yield from named(thing, field, value)
                for key, part in value.items():
                    if isinstance(part, str):
                        yield thing, field, part
                    elif part == 1:
                        yield thing, field, key


def named(thing: str, field: str, part: dict[str, Any]) -> Iterator[Fact]:
    for key in ("name", "item", "location"):
        found = part.get(key)
        if isinstance(found, dict):
            found = found.get("name")
        if isinstance(found, str):
            yield thing, field, found


def pokemon(folder: Path) -> Iterator[Fact]:
    def table(file: str) -> dict[str, Any]:
        path = json.dumps(str(folder / "dist" / "data" / file))
        line = f"const m = require({path}); console.log(JSON.stringify(Object.values(m)[0]))"
        printed = subprocess.run(["node", "-e", line], capture_output=True, text=True, check=True, cwd=folder)
        found: dict[str, Any] = json.loads(printed.stdout)
        return found

    creatures = table("pokedex.js")
    for record in creatures.values():
        yield from about(record["name"], record, ("formeOrder", "cosmeticFormes"))
    for record in table("moves.js").values():
        yield from about(f"move {record['name']}", record, ("desc", "shortDesc", "contestType"))
    moves = {key: f"move {record['name']}" for key, record in table("moves.js").items()}
    for key, record in table("learnsets.js").items():
        if key in creatures and creatures[key].get("num", 0) % 4 == 1:  # a fourth of them: the rest would be this alone
            for move in record.get("learnset", {}):
                if move in moves:
                    yield creatures[key]["name"], "learns", moves[move]
    for kind, record in table("typechart.js").items():
        for other, code in record["damageTaken"].items():
            if code:
                yield kind.capitalize(), ("", "weak to", "resists", "immune to")[code], other
    for record in table("natures.js").values():
        yield from about(record["name"], record)


def minecraft(folder: Path) -> Iterator[Fact]:
    data = folder / "minecraft-data" / "data" / "pc" / "1.20"
    things = {record["id"]: record["name"] for record in read(data / "items.json")}
    for file in ("biomes", "blocks", "enchantments", "entities", "foods", "effects"):
        for record in read(data / f"{file}.json"):
            yield from about(record["name"], record, ("displayName", "metadataKeys", "states", "harvestTools"))
            yield record["name"], "kind", file
            for tool in record.get("harvestTools", {}):
                if int(tool) in things:
                    yield record["name"], "harvested with", things[int(tool)]
    for record in read(data / "items.json"):
        yield from about(record["name"], record, ("displayName",))
        for word in record["name"].split("_"):
            yield record["name"], "word", f"word {word}"
    for made, recipes in read(data / "recipes.json").items():
        for recipe in recipes:
            rows = [recipe.get("ingredients", []), *recipe.get("inShape", [])]
            for used in {item for row in rows for item in row if isinstance(item, int)}:
                if int(made) in things and used in things:
                    yield things[int(made)], "made of", things[used]
    for file, what in (("blockLoot", "block"), ("entityLoot", "entity")):
        for record in read(data / f"{file}.json"):
            for drop in record["drops"]:
                yield record[what], f"{what} drops", drop["item"]


def dota(folder: Path) -> Iterator[Fact]:
    data = folder / "build"
    for record in read(data / "heroes.json").values():
        yield from about(record["name"], record, ("img", "icon", "localized_name"))
    for hero, record in read(data / "hero_abilities.json").items():
        yield from about(hero, record)
    skip = ("img", "dname", "desc", "lore", "attrib", "mc", "cd", "notes", "hint")
    for file in ("abilities", "items"):
        for name, record in read(data / f"{file}.json").items():
            yield from about(name, {k: v for k, v in record.items() if v != []}, (*skip, "abilities"))
            for attribute in record.get("attrib", []):
                if isinstance(attribute, dict):
                    yield name, "has", f"attribute {attribute.get('key')}"


def warframe(folder: Path) -> Iterator[Fact]:
    skip = (
        "description",
        "imageName",
        "uniqueName",
        "introduced",
        "levelStats",
        "patchlogs",
        "wikiaThumbnail",
        "wikiaUrl",
    )
    for path in sorted((folder / "data" / "json").glob("*.json")):
        if path.stem in ("i18n", "Glyphs", "Skins", "Sigils", "All"):
            continue
        for record in read(path):
            if path.stem != "Relics" or record["name"].endswith("Intact"):
                yield from about(record["name"], record, skip)
            for reward in record.get("rewards", []):
                if record["name"].endswith("Intact"):
                    yield record["name"], f"rewards {reward['rarity'].lower()}", reward["item"]["name"]
            for drop in record.get("drops", []):
                place = drop["location"].partition(",")[0].partition("(")[0].strip()
                yield record["name"], f"drops {drop.get('rarity', '')}".strip().lower(), place


def world(folder: Path) -> Iterator[Fact]:
    countries = read(folder / "countries.json")
    name = {record["cca3"]: record["name"]["common"] for record in countries}
    for record in countries:
        thing = name[record["cca3"]]
        for field in ("region", "subregion", "unRegionalGroup", "status"):
            yield thing, field, str(record[field])
        for code, language in record["languages"].items():
            yield thing, "language", f"language {language}"
            for other, titles in record["name"]["native"].items():
                if other == code and titles["common"] == thing:
                    yield thing, "named in its language", f"language {language}"
        for currency in record["currencies"] or {}:
            yield thing, "currency", currency
        for other in record["borders"]:
            yield thing, "borders", name[other]
        for capital in record["capital"]:
            yield thing, "capital", capital
            yield capital, "lies in", record["subregion"]
        for flag in ("independent", "unMember", "landlocked"):
            yield thing, flag, str(record[flag])
        yield thing, "dials", str(record["idd"].get("root"))
        yield thing, "people", str(record.get("demonyms", {}).get("eng", {}).get("f"))
        for language, titles in record["translations"].items():
            if titles["common"] == thing:
                yield thing, "same name in", f"code {language}"


def browsers(folder: Path) -> Iterator[Fact]:
    def walk(path: str, part: dict[str, Any]) -> Iterator[Fact]:
        for key, below in part.items():
            if key == "__compat":
                for browser, support in below["support"].items():
                    since = (support if isinstance(support, dict) else support[0]).get("version_added")
                    if isinstance(since, str) and browser in ("chrome", "firefox", "safari", "edge", "nodejs"):
                        yield path, f"since {browser}", f"{browser} {since}"
                specs = below.get("spec_url", [])
                for spec in [specs] if isinstance(specs, str) else specs:
                    yield path, "specified in", spec.partition("#")[0]
                for state, holds in below.get("status", {}).items():
                    yield path, state, str(holds)
            elif isinstance(below, dict):
                yield f"{path}.{key}", "part of", path
                yield f"{path}.{key}", "named", f"name {key}"
                yield from walk(f"{path}.{key}", below)

    data = read(folder / "data.json")
    for kind in ("css", "html", "javascript", "svg", "http", "webassembly"):
        yield from walk(kind, data[kind])
    for browser, record in data["browsers"].items():
        yield from about(browser, {k: v for k, v in record.items() if isinstance(v, str | bool)})
        for version, release in record["releases"].items():
            yield f"{browser} {version}", "release of", browser
            yield f"{browser} {version}", "engine", f"{release.get('engine')} {release.get('engine_version')}"
            yield f"{browser} {version}", "year", str(release.get("release_date"))[:4]


def unicode(_: Path) -> Iterator[Fact]:
    for code in (*range(0x21, 0x2800), *range(0x1D400, 0x1D800)):
        letter = chr(code)
        words = unicodedata.name(letter, "").split()
        if not words:
            continue
        yield letter, "category", unicodedata.category(letter)
        yield letter, "direction", f"direction {unicodedata.bidirectional(letter)}"
        yield letter, "script", f"word {words[0]}"
        yield letter, "block", f"block {code // 128}"
        for word in words[1:]:
            yield letter, "called", f"word {word}"
        for relation, other in (("lower", letter.lower()), ("upper", letter.upper()), ("folds to", letter.casefold())):
            if other != letter and len(other) == 1:
                yield letter, relation, other
        first, *parts = unicodedata.decomposition(letter).split() or [""]
        kind, parts = (first, parts) if first.startswith("<") else ("decomposes", [first, *parts])
        for part in filter(None, parts):
            yield letter, kind, chr(int(part, 16))


def code(_: Path) -> Iterator[Fact]:
    root = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(root.rglob("*.py")):
        where = path.relative_to(root)
        if {"site-packages", "test", "tests", "idlelib", "lib2to3"} & {*where.parts}:
            continue
        module = ".".join(where.with_suffix("").parts).removesuffix(".__init__")
        if "." in module:
            yield module, "inside", module.rpartition(".")[0]
        for part in ast.walk(ast.parse(path.read_text("utf-8", errors="replace"))):
            match part:
                case ast.Import(names=names):
                    for alias in names:
                        yield module, "imports", alias.name
                case ast.ImportFrom(module=str(other), names=names, level=0):
                    yield module, "imports", other
                    for alias in names:
                        yield module, "takes", f"name {alias.name}"
                case ast.ClassDef(name=name, bases=bases, body=body):
                    yield f"{module}.{name}", "class of", module
                    for base in bases:
                        yield f"{module}.{name}", "inherits", f"name {ast.unparse(base).rpartition('.')[2]}"
                    yield f"{module}.{name}", "named", f"name {name}"
                    for method in body:
                        if isinstance(method, ast.FunctionDef):
                            yield f"{module}.{name}", "has method", f"method {method.name}"
                            for call in ast.walk(method):
                                if isinstance(call, ast.Raise) and isinstance(call.exc, ast.Call):
                                    yield f"{module}.{name}", "raises", f"name {ast.unparse(call.exc.func)}"


GRAPHS: dict[str, Callable[[Path], Iterator[Fact]]] = {
    "pokemon": pokemon, "minecraft": minecraft, "dota": dota, "warframe": warframe, "world": world,
    "browsers": browsers, "unicode": unicode, "code": code,
}  # fmt: skip


def kept(facts: Iterable[Fact]) -> list[Fact]:
    """Distinct facts whose ends occur elsewhere too, of relations with at least five; every k-th of very many."""
    found = list(
        dict.fromkeys(
            (h, r.replace("_", " "), t)
            for h, r, t in facts
            if h and t and h != t and max(len(h), len(t)) <= LONGEST_NAME and not {"\t", "\n"} & {*h, *t}
        )
    )
    for _ in range(3):  # what goes may leave another one alone
        times = Counter(end for h, _, t in found for end in (h, t))
        often = Counter(r for _, r, _ in found)
        found = [(h, r, t) for h, r, t in found if times[t] > 1 and times[h] > 1 and often[r] >= 5]
    return found[:: max(1, round(len(found) / MOST_FACTS))]


def write(
    folder: Path, graphs: dict[str, Callable[[Path], Iterator[Fact]]], files: Callable[[str, Path], Path]
) -> None:
    """Makes each graph from its files, and says how large it is."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in graphs.items():
        with tempfile.TemporaryDirectory() as place:
            facts = kept(make(files(name, Path(place))))
        (folder / f"{name}.txt").write_text("".join("\t".join(fact) + "\n" for fact in facts), encoding="utf-8")
        entities, relations = {end for h, _, t in facts for end in (h, t)}, {r for _, r, _ in facts}
        print(f"{name}: {len(facts):,} facts, {len(entities):,} entities, {len(relations)} relations")


def files(name: str, folder: Path) -> Path:
    return unpacked(PACKAGES[name], folder) if name in PACKAGES else folder


if __name__ == "__main__":
    write(Path(sys.argv[1]), GRAPHS, files)
