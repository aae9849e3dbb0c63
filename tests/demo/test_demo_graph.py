"""The bundled demo graph is well formed and agrees with itself."""

from collections import Counter, defaultdict
from pathlib import Path

import polars as pl
import pytest

DEMO = Path(__file__).resolve().parents[2] / "src" / "gamma_kg" / "demo"
Triple = tuple[str, str, str]

CONTINENTS = {"Africa", "Asia", "Europe", "North America", "Oceania", "South America"}
# The United Nations geoscheme decides for countries that reach into two continents or lie between them.
TRANSCONTINENTAL = {
    "Armenia": "Asia",
    "Azerbaijan": "Asia",
    "Cyprus": "Asia",
    "Egypt": "Africa",
    "Georgia": "Asia",
    "Indonesia": "Asia",
    "Kazakhstan": "Asia",
    "Russia": "Europe",
    "Timor-Leste": "Asia",
    "Turkey": "Asia",
}


def lines(name: str) -> list[str]:
    text = (DEMO / name).read_bytes().decode("utf-8")
    assert text.endswith("\n") and "\r" not in text
    return text[:-1].split("\n")


def read(name: str) -> list[Triple]:
    rows = [tuple(line.split("\t")) for line in lines(name)]
    return [(row[0], row[1], row[2]) for row in rows]


FACTS = read("facts.tsv")
HELD_OUT = read("held_out.tsv")
ALL = FACTS + HELD_OUT


def pairs(relation: str, triples: list[Triple] = ALL) -> set[tuple[str, str]]:
    return {(head, tail) for head, name, tail in triples if name == relation}


def tails(relation: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for head, tail in pairs(relation):
        found[head].add(tail)
    return found


COUNTRIES = {head for head, _ in pairs("on continent")}


@pytest.mark.parametrize("name", ["facts.tsv", "held_out.tsv"])
def test_every_line_has_three_clean_columns(name: str) -> None:
    for number, line in enumerate(lines(name), start=1):
        columns = line.split("\t")
        assert len(columns) == 3, f"{name}:{number}: {line!r}"
        for column in columns:
            assert column and " ".join(column.split()) == column, f"{name}:{number}: {column!r}"
            assert "_" not in column and '"' not in column, f"{name}:{number}: {column!r}"


@pytest.mark.parametrize(("name", "triples"), [("facts.tsv", FACTS), ("held_out.tsv", HELD_OUT)])
def test_a_csv_reader_sees_the_same_triples(name: str, triples: list[Triple]) -> None:
    frame = pl.read_csv(DEMO / name, separator="\t", has_header=False, infer_schema=False)
    assert frame.rows() == triples


def test_no_triple_occurs_twice_in_the_two_files() -> None:
    assert [triple for triple, count in Counter(ALL).items() if count > 1] == []


def test_sizes_are_those_the_issue_asks_for() -> None:
    assert 1500 <= len(FACTS) <= 3000
    assert 60 <= len(HELD_OUT) <= 100
    assert len({relation for _, relation, _ in FACTS}) >= 14
    assert len({relation for _, relation, _ in HELD_OUT}) >= 8
    assert 150 <= len(COUNTRIES) <= 195


def test_held_out_facts_use_only_the_vocabulary_of_the_graph() -> None:
    entities = {name for head, _, tail in FACTS for name in (head, tail)}
    relations = {relation for _, relation, _ in FACTS}
    assert {name for head, _, tail in HELD_OUT for name in (head, tail)} <= entities
    assert {relation for _, relation, _ in HELD_OUT} <= relations


def test_relations_and_entities_share_no_name() -> None:
    assert {relation for _, relation, _ in ALL}.isdisjoint(name for head, _, tail in ALL for name in (head, tail))


def test_no_fact_relates_an_entity_to_itself() -> None:
    # South America is a continent that is its own subregion, but never stands on both sides of one triple.
    assert [triple for triple in ALL if triple[0] == triple[2]] == []


def test_borders_are_symmetric_and_between_countries() -> None:
    borders = pairs("borders")
    assert {(tail, head) for head, tail in borders} == borders
    assert {head for head, _ in borders} <= COUNTRIES


def test_capital_of_and_has_capital_are_inverse() -> None:
    assert {(tail, head) for head, tail in pairs("has capital")} == pairs("capital of")


def test_every_capital_is_located_in_its_one_country() -> None:
    located = tails("located in")
    for city, country in pairs("capital of"):
        assert located[city] == {country}
    several = {country for country, cities in tails("has capital").items() if len(cities) > 1}
    assert several == {"South Africa"}


def test_largest_city_is_located_in_its_country_and_is_not_the_capital() -> None:
    capitals = pairs("has capital")
    for country, city in pairs("largest city"):
        assert (city, country) in pairs("located in")
        assert (country, city) not in capitals


def test_each_country_lies_in_one_subregion_of_its_one_continent() -> None:
    located, continent, whole = tails("located in"), tails("on continent"), tails("part of")
    for country in COUNTRIES:
        assert len(located[country]) == 1 and len(continent[country]) == 1, country
        (subregion,) = located[country]
        expected = {subregion} if subregion == "South America" else whole[subregion]
        assert continent[country] == expected, country
        assert continent[country] <= CONTINENTS
    assert {country: next(iter(continent[country])) for country in TRANSCONTINENTAL} == TRANSCONTINENTAL


def test_only_countries_and_their_cities_are_located_somewhere() -> None:
    for place, whole in pairs("located in"):
        assert (place in COUNTRIES) != (whole in COUNTRIES), place


@pytest.mark.parametrize("relation", ["part of", "branch of", "tributary of"])
def test_hierarchies_give_one_parent_and_have_no_cycle(relation: str) -> None:
    parents = tails(relation)
    assert all(len(found) == 1 for found in parents.values())
    for start in list(parents):
        seen = {start}
        place = start
        while place in parents:
            (place,) = parents[place]
            assert place not in seen, f"{relation}: cycle through {place}"
            seen.add(place)


def test_language_family_is_the_top_of_the_branches() -> None:
    parent = {child: next(iter(found)) for child, found in tails("branch of").items()}
    families = tails("language family")
    languages = {language for _, language in pairs("official language")}
    assert set(families) == languages & set(parent)
    for language, found in families.items():
        top = language
        while top in parent:
            top = parent[top]
        assert found == {top}, language


def test_highest_points_are_mountains_in_their_country() -> None:
    assert {(mountain, country) for country, mountain in pairs("highest point")} <= pairs("mountain in")


@pytest.mark.parametrize("relation", ["capital of", "flows through", "mountain in"])
def test_tails_that_should_be_countries_are(relation: str) -> None:
    assert {tail for _, tail in pairs(relation)} <= COUNTRIES


@pytest.mark.parametrize(
    "relation", ["borders", "coast on", "currency", "has capital", "highest point", "member of", "official language"]
)
def test_heads_that_should_be_countries_are(relation: str) -> None:
    assert {head for head, _ in pairs(relation)} <= COUNTRIES


def test_a_river_passes_countries_that_hang_together() -> None:
    borders = tails("borders")
    for river, countries in tails("flows through").items():
        reached = {min(countries)}
        while more := {near for country in reached for near in borders[country] & countries} - reached:
            reached |= more
        assert reached == countries, river


def test_a_river_ends_at_a_coast_of_a_country_it_passes() -> None:
    coasts, through, whole = tails("coast on"), tails("flows through"), tails("part of")
    for river, sea in pairs("mouth in"):
        seas = {name for country in through[river] for name in coasts[country]}
        seas |= {larger for name in seas for larger in whole[name]}
        assert sea in seas, river


def test_euro_users_in_the_graph_cover_the_euro_area() -> None:
    euro = {country for country, currency in pairs("currency") if currency == "Euro"}
    union = {country for country, group in pairs("member of") if group == "European Union"}
    assert len(union) == 27
    assert len(euro & union) == 20
    assert euro - union == {"Andorra", "Monaco", "Montenegro", "San Marino", "Vatican City"}


def test_held_out_inverses_are_of_both_kinds() -> None:
    # Some have their partner in the graph (easy), some have it held out as well (hard).
    facts, held_out = set(FACTS), set(HELD_OUT)
    for relation, partner in [("borders", "borders"), ("capital of", "has capital"), ("has capital", "capital of")]:
        partners = {(tail, partner, head) for head, tail in pairs(relation, HELD_OUT)}
        assert partners & facts and partners & held_out
        assert partners <= facts | held_out


def test_the_readme_counts_are_those_of_the_files() -> None:
    text = (DEMO / "README.md").read_text(encoding="utf-8")
    in_facts = Counter(relation for _, relation, _ in FACTS)
    in_held_out = Counter(relation for _, relation, _ in HELD_OUT)
    table = [[cell.strip() for cell in row.split("|")[1:-1]] for row in text.splitlines() if row.startswith("| `")]
    counts = {row[0].strip("`"): (int(row[2]), int(row[3])) for row in table if len(row) == 5}
    assert counts == {relation: (in_facts[relation], in_held_out[relation]) for relation in in_facts}
    assert f"| {len(FACTS):,} |" in text and f"| {len(HELD_OUT)} |" in text
    entities = {name for head, _, tail in FACTS for name in (head, tail)}
    assert f"{len(entities)} entities, {len(in_facts)} relations" in text
    assert f"about {len(COUNTRIES)} countries" in text
