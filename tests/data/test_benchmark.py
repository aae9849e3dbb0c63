import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from gamma_kg.data.benchmark import RECORD, load_benchmark
from gamma_kg.data.catalog import catalog, data_folder, dataset, in_group
from gamma_kg.errors import DataError

SHARED = Path(__file__).parents[2].parent / "shared" / "datasets"
MANIFEST = json.loads((SHARED / "MANIFEST.json").read_text()) if SHARED.is_dir() else []
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the benchmark files are not beside the project")


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, text in files.items():
        (folder / f"{part}.txt").write_text(text.replace(" ", "\t"))
    return folder


@needs_shared
@pytest.mark.parametrize("row", MANIFEST, ids=[row["slug"] for row in MANIFEST])
def test_every_set_loads_with_the_counts_of_its_manifest(row):
    benchmark = load_benchmark(row["slug"], SHARED)
    assert benchmark.group == row["group"]
    if row["group"] == "transductive":
        counts = row["counts"]
        wanted = {"test": (counts["entities"], counts["relations"], counts["train"], counts["test"])}
        wanted["valid"] = (counts["entities"], counts["relations"], counts["train"], counts["valid"])
    else:
        keys = ("entities", "relations", "triples", "queries")
        wanted = {s: tuple(row["counts"][s][k] for k in keys) for s in ("valid", "test") if s in row["counts"]}
    for name, counts in wanted.items():
        # The manifest counts as the published evaluation does, which reads test.txt for validation too.
        split = benchmark.split(name, published_filter=True)
        assert (split.num_entities, split.num_relations, len(split.graph), len(split.queries)) == counts
        protocol = benchmark.protocol
        known_files = [f"{part}.txt" for part in protocol.published_filter.get(name, protocol.filter[name])]
        assert len(split.known) == sum(facts["lines"] for file, facts in row["files"].items() if file in known_files)
    if "valid" not in wanted:
        with pytest.raises(DataError, match=r"has no (train|valid) file"):
            benchmark.split("valid")


@needs_shared
@pytest.mark.parametrize("row", MANIFEST, ids=[row["slug"] for row in MANIFEST])
def test_catalogue_states_what_the_manifest_states(row):
    entry = dataset(row["slug"])
    assert entry.name == row["paper_name"]
    for name, facts in row["files"].items():
        if name.endswith(".txt"):
            assert (entry.files[name].lines, entry.files[name].sha256) == (facts["lines"], facts["sha256"])


def test_catalogue_names_the_57_sets():
    sizes = {group: len(in_group(group)) for group in ("inductive-er", "inductive-e", "transductive", "all")}
    assert sizes == {"inductive-er": 23, "inductive-e": 18, "transductive": 16, "all": 57}
    entries = catalog().items()
    sparse = {f"fb15k237-{n}" for n in (10, 20, 50)}
    assert {slug for slug, entry in entries if entry.ultra_task == "tail"} == {"nell23k", "wd-singer"} | sparse
    for entry in catalog().values():
        assert {part.file for part in entry.downloads} == set(entry.files)
        assert all(url.startswith("https://") and "{" not in url for part in entry.downloads for url in part.urls)
        assert entry.licence and entry.counts["test"]["queries"] > 0


PROTOCOLS = {  # family: graph for valid, graph for test, filter for valid, filter for test
    "transductive": ("train", "train", "train valid", "train valid test"),
    "grail, hm, mtdea": ("train", "inference", "train valid", "inference test"),
    "ilpc, ingram": ("inference", "inference", "inference valid", "inference valid test"),
}


@pytest.mark.parametrize("slug", list(catalog()))
def test_graph_and_filter_follow_the_published_protocol(slug):
    entry = catalog()[slug]
    if entry.group == "transductive":
        family = "transductive"
    elif re.fullmatch(r"(fb|wk|nl)-\d+|ilpc22-[sl]", slug):
        family = "ilpc, ingram"
    else:
        family = "grail, hm, mtdea"
    graph, known = entry.protocol.graph, {split: " ".join(parts) for split, parts in entry.protocol.filter.items()}
    assert (graph["valid"], graph["test"], known["valid"], known["test"]) == PROTOCOLS[family]


@pytest.mark.parametrize("slug", list(catalog()))
def test_no_validation_filter_reads_a_test_triple(slug):
    protocol = catalog()[slug].protocol
    assert "test" not in protocol.filter["valid"] and protocol.graph["valid"] != "test"
    assert set(protocol.published_filter.get("valid", ())) <= {*protocol.filter["valid"], "test"}


def test_validation_does_not_change_when_the_test_file_does(tmp_path):
    files = {"train": "b r a\nb s c\n", "valid": "c r a\n", "test": "a s d\n"}
    before = load_benchmark(str(write(tmp_path / "mine", **files)))
    split, key = before.split("valid"), before.data_hash("valid")
    after = load_benchmark(str(write(tmp_path / "mine", **{**files, "test": "x s y\nc r b\n"})))
    assert after.data_hash("valid") == key
    for name in ("graph", "queries", "known"):
        assert np.array_equal(getattr(after.split("valid"), name), getattr(split, name))
    assert after.split("valid").num_entities == 3, "entities of test.txt alone are no candidates"
    assert len(after.split("valid", published_filter=True).known) == len(split.known) + 2


def test_names_are_found_by_slug_or_paper_name_and_suggested():
    assert dataset("NL-100").slug == dataset("nl-100").slug == "nl-100"
    with pytest.raises(DataError, match="did you mean 'nl-100'"):
        dataset("nl-101")
    with pytest.raises(DataError, match="inductive-er"):
        in_group("inductive-re")


def test_data_folder_is_the_option_then_the_environment_then_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("GAMMA_DATA", raising=False)
    assert data_folder().name == "datasets"
    monkeypatch.setenv("GAMMA_DATA", "/somewhere")
    assert data_folder() == Path("/somewhere")
    assert data_folder("/elsewhere") == Path("/elsewhere")


def test_own_transductive_folder_numbers_by_first_appearance_and_filters_all_files(tmp_path):
    folder = write(tmp_path / "mine", train="b r a\nb s c\nb r a\n", valid="c r a\n", test="a s d\n")
    benchmark = load_benchmark(str(folder))
    split = benchmark.split("test")
    assert (benchmark.name, benchmark.group) == ("mine", "own")
    assert list(split.entities) == ["b", "a", "c", "d"] and list(split.relations) == ["r", "s"]
    assert split.graph.tolist() == [[0, 0, 1], [0, 1, 2], [0, 0, 1]]  # the repeated line stays
    assert split.queries.tolist() == [[1, 1, 3]]  # d occurs in test only and is an entity all the same
    assert len(split.known) == 5 and len(benchmark.split("valid").known) == 4


@pytest.mark.parametrize(
    ("valid", "protocol", "known"),
    [("u r v\n", "validates-on-train", 3), ("a r c\n", "validates-on-inference", 4)],
)
def test_own_inductive_folder_validates_where_its_validation_triples_live(tmp_path, valid, protocol, known):
    folder = write(tmp_path, train="u r v\nv r u\n", inference="a r b\nb r c\n", valid=valid, test="c r a\n")
    benchmark = load_benchmark(str(folder))
    assert benchmark.protocol.name == protocol
    assert len(benchmark.split("test").known) == known
    assert benchmark.split("test").num_entities == 3
    assert benchmark.split("train").num_entities == 2


def test_folder_without_a_graph_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"found test\.txt"):
        load_benchmark(str(write(tmp_path, test="a r b\n")))


def test_missing_set_says_where_to_put_it(tmp_path):
    with pytest.raises(DataError, match=r"nl-100 is not in .*gamma datasets fetch nl-100.*--data-dir"):
        load_benchmark("nl-100", tmp_path)


@needs_shared
def test_changed_file_is_refused_with_both_hashes(tmp_path):
    source, copy = SHARED / "nl-100", tmp_path / "nl-100"
    copy.mkdir()
    for path in source.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    load_benchmark("nl-100", tmp_path)
    lines = (copy / "test.txt").read_text().splitlines(keepends=True)
    (copy / "test.txt").write_text("".join(lines[:-1]))
    with pytest.raises(DataError) as caught:
        load_benchmark("nl-100", tmp_path)
    text, expected = str(caught.value), dataset("nl-100").files["test.txt"].sha256
    assert expected in text and "792 lines" in text and text.count("sha256") == 1


def test_recorded_hash_of_a_download_is_enforced(tmp_path):
    folder = write(tmp_path / "yago310", train="a r b\n", valid="a r c\n", test="b r c\n")
    load_benchmark("yago310", tmp_path)  # no hash is known: taken as it is
    (folder / RECORD).write_text(json.dumps({"test.txt": "0" * 64}))
    with pytest.raises(DataError, match="0000"):
        load_benchmark("yago310", tmp_path)


def test_data_hash_follows_the_files_of_the_split(tmp_path):
    one = load_benchmark(str(write(tmp_path / "one", train="a r b\n", valid="a r c\n", test="b r c\n")))
    two = load_benchmark(str(write(tmp_path / "two", train="a r b\n", valid="a r c\n", test="b r a\n")))
    assert one.data_hash("test") != two.data_hash("test")
    assert one.data_hash("train") == two.data_hash("train")


class FakePykeen:
    """As much of `pykeen.datasets` as is used."""

    class Resolver:
        lookup_dict = {"nations": type("Nations", (), {})}  # noqa: RUF012

        def normalize(self, name):
            return name.casefold()

    class Factory:
        def __init__(self, *triples):
            self.mapped_triples = triples

        def label_triples(self, triples):
            return [[f"name {part}" for part in triple] for triple in triples]

    class Nations:
        def __init__(self, factory):
            self.training, self.testing, self.validation = factory((0, 0, 1), (1, 0, 2)), factory((0, 0, 2)), None

    dataset_resolver = Resolver()
    asked = 0

    def get_dataset(self, dataset):
        self.asked += 1
        return self.Nations(self.Factory)


def test_pykeen_set_is_exported_once_and_read_like_any_other(monkeypatch, tmp_path):
    fake = FakePykeen()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pykeen", fake)
    monkeypatch.setitem(sys.modules, "pykeen.datasets", fake)
    for _ in range(2):
        benchmark = load_benchmark("pykeen:Nations")
        assert benchmark.name == "pykeen-nations" and list(benchmark.files) == ["train", "test"]
        assert list(benchmark.split("test").entities) == ["name 0", "name 1", "name 2"]
    assert fake.asked == 1
    with pytest.raises(DataError, match="did you mean 'Nations'"):
        load_benchmark("pykeen:Nation")


def test_missing_pykeen_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pykeen", None)
    with pytest.raises(DataError, match=r"pip install 'gamma-kg\[pykeen\]'"):
        load_benchmark("pykeen:Nations")
