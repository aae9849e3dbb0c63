import csv
import io
import json
import math
from html.parser import HTMLParser

import numpy as np
import pytest

from gamma_kg.data.catalog import GROUPS, PRETRAINING, catalog
from gamma_kg.data.leakage import leakage_of
from gamma_kg.drawing.charts import difference_bars, grouped_bars
from gamma_kg.errors import ConfigError, DataError
from gamma_kg.evaluation.store import FORMAT
from gamma_kg.report.compare import compare, compare_queries
from gamma_kg.report.published import published
from gamma_kg.report.render import FORMATS, render
from gamma_kg.report.runs import Run, common_graphs, leakage_groups, load_runs, paper_groups
from gamma_kg.report.tables import group_table, report_tables


def result(dataset, model, mrr, **more):
    fair = {"mrr": mrr + 0.01, "hits@1": mrr, "hits@3": mrr, "hits@10": mrr + 0.1, "mr": 5.0}
    metrics = {"mrr": mrr, "hits@1": mrr, "hits@3": mrr, "hits@10": mrr + 0.1, "mr": 5.0, "amri": 0.5, "fair": fair}
    facts = {
        "format": FORMAT,
        "dataset": dataset,
        "group": catalog()[dataset].group,
        "split": "test",
        "limit": None,
        "task": "both",
    }
    facts |= {"queries": 10, "seconds": 1.0, "leakage": catalog()[dataset].leakage, "key": f"{dataset} {model}"}
    facts |= {"model": {"name": model, "hash": f"hash of {model}", "description": "made up"}, "by": {}}
    return facts | metrics | more


def write(folder, *results):
    folder.mkdir(exist_ok=True)
    for record in results:
        (folder / f"{record['dataset']}.json").write_text(json.dumps(record, indent=2))
    return folder


@pytest.fixture
def folders(tmp_path):
    strata = {"halflink": {"both halves seen": {"queries": 4, "triples": 2, "mrr": 0.25, "hits@10": 0.5}}}
    ours = [("nl-100", 0.5), ("nl-0", 0.4), ("wn18rr-v1", 0.6), ("codex-s", 0.5), ("fb15k237", 0.4)]
    one = write(tmp_path / "one", *(result(name, "ours", mrr, by=strata) for name, mrr in ours))
    theirs = [("nl-100", 0.45), ("nl-0", 0.4), ("wn18rr-v1", 0.7), ("codex-s", 0.3)]
    two = write(tmp_path / "two", *(result(name, "ppr", mrr, by=strata) for name, mrr in theirs))
    return [one, two]


def test_published_figures_agree_with_each_other():
    """The means of the per-graph table are those of the group table: a wrong digit would show here."""
    figures = published()
    assert set(figures.results) == set(figures.patterns) == set(catalog()) - {"hetionet"}
    for model in ("ULTRA", "GAMMA"):
        for group, graphs in paper_groups(list(catalog())).items():
            for metric in ("mrr", "hits@10"):
                mean = sum(figures.results[g][model][metric] for g in graphs) / len(graphs)
                assert mean == pytest.approx(figures.groups[model][group][metric], abs=0.0012), (model, group, metric)
    sizes = {group: len(graphs) for group, graphs in paper_groups(list(catalog())).items()}
    assert sizes == {"inductive-er": 23, "inductive-e": 18, "transductive": 12, "total": 53}


def test_results_with_rules_are_a_run_of_their_own(folders, tmp_path):
    ruled = result("nl-100", "ours", 0.6, rules=True, key="another")
    runs = load_runs([*folders, write(tmp_path / "ruled", ruled)])
    assert [run.name for run in runs] == ["ours", "ours, with rules", "ppr"]
    assert [run.results["nl-100"]["mrr"] for run in runs] == [0.5, 0.6, 0.45]


def test_group_table_leaves_out_pretraining_graphs_and_compares_on_common_graphs(folders):
    runs = load_runs(folders)
    table = group_table(runs)
    rows = {row[0]: row for row in table.rows}
    assert table.columns[1] == "inductive e,r (2) MRR" and table.columns[-2] == "total (4) MRR"
    assert rows["ours"][1] == "0.450" and rows["ours"][-2] == "0.500"
    assert rows["ULTRA (paper), same graphs"][1] == "0.397"  # (0.441 + 0.353) / 2
    assert rows["GAMMA (paper), all 53"][-2] == "0.376"


def test_paired_comparison_counts_wins_ties_and_losses():
    result = compare([0.5, 0.4, 0.3, 0.2], [0.4, 0.4002, 0.35, 0.1])
    assert (result.wins, result.ties, result.losses) == (2, 1, 1)
    assert result.mean_difference == pytest.approx(0.03745)
    assert result.interval[0] < result.mean_difference < result.interval[1]
    assert 0 < result.p_value <= 1
    assert compare([0.1, 0.2], [0.1, 0.2]).p_value == 1


def test_leakage_free_graphs_are_those_of_other_families():
    groups = leakage_groups(list(catalog()), [Run("ours", "", "", {})])
    free = set(groups["leakage-free families"])
    assert {"nell-v1", "nl-100", "hm-1k", "mt1-tax", "metafam", "conceptnet100k", "nell23k", "nell995"} <= free
    assert not free & {"wn18rr-v1", "fb15k237-v1", "fb-25", "codex-s", "ilpc22-s", "wk-25", *PRETRAINING}


def test_baseline_that_is_not_beaten_is_named(folders):
    table = next(table for table in report_tables(load_runs(folders)) if table.name == "baselines")
    assert table.rows == [["ours", "ppr", "4", "2", "nl-0, wn18rr-v1"]]


def test_every_format_renders_and_escapes(folders, tmp_path):
    runs = load_runs(folders)
    texts = {name: render(runs, name) for name in FORMATS}
    assert "| ours |" in texts["markdown"] and "0.500" in texts["terminal"]
    assert r"\begin{tabular}" in texts["latex"] and "95 %" not in texts["latex"]
    rows = list(csv.DictReader(io.StringIO(texts["csv"])))
    public = {f"{model} (public run)" for model in ("TRIX", "MOTIF", "FLOCK", "KG-ICL", "SEMMA")}
    assert {row["model"] for row in rows} == {"ours", "ppr", "ULTRA (paper)", "GAMMA (paper)", *public}
    flock = [row for row in rows if row["model"] == "FLOCK (public run)"]
    assert {row["dataset"] for row in flock} == {"nl-100", "nl-0", "wn18rr-v1"} and all(row["hits@10"] for row in flock)
    assert next(row for row in rows if row["model"] == "ours" and row["dataset"] == "nl-100")["mrr"] == "0.5"
    with pytest.raises(ConfigError, match="markdown"):
        render(runs, "markdwon")


def test_html_page_is_well_formed_and_needs_nothing_from_outside(folders):
    page = render(load_runs(folders), "html")

    class Balance(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.links = [], []

        def handle_starttag(self, tag, attributes):
            self.links += [value for name, value in attributes if name in ("src", "href")]
            if tag != "meta":
                self.open.append(tag)

        def handle_startendtag(self, tag, attributes):
            pass

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

    parser = Balance()
    parser.feed(page)
    assert parser.open == [] and parser.links == [] and page.count("<svg") >= 4
    assert "ours − ppr" in page and "@import" not in page and "<script" not in page


def test_plots_scale_and_escape():
    bars = difference_bars({"a<b": 0.5, "c": -0.25, "zero": 0.0}, "t")
    assert "a&lt;b" in bars and bars.index("a&lt;b") < bars.index(">zero<") < bars.index(">c<")
    assert bars.count('class="loss ') == 1
    groups = grouped_bars(["x", "y"], {"m": [0.5, float("nan")]}, "t")
    assert groups.count("<title>m, ") == 1 and "m, x: 0.500" in groups


def test_two_different_results_of_one_model_on_one_graph_are_refused(tmp_path):
    one = write(tmp_path / "one", result("nl-100", "ours", 0.5))
    two = write(tmp_path / "two", result("nl-100", "ours", 0.4, key="another"))
    with pytest.raises(DataError, match="second, different result"):
        load_runs([one, two])


def test_models_of_the_same_name_stay_apart(tmp_path):
    other = {"name": "ours", "hash": "0123456789", "description": ""}
    one = write(tmp_path / "one", result("nl-100", "ours", 0.5))
    two = write(tmp_path / "two", result("nl-100", "ours", 0.4, key="another") | {"model": other})
    assert [run.name for run in load_runs([one, two])] == ["ours hash o", "ours 012345"]


def test_folder_without_results_says_what_to_do(tmp_path):
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(DataError, match="gamma evaluate"):
        load_runs([tmp_path])
    with pytest.raises(DataError, match="no folder"):
        load_runs([tmp_path / "absent"])


def test_sampled_results_are_marked(tmp_path):
    folder = write(tmp_path / "one", result("nl-100", "ours", 0.5, limit={"triples": 5, "seed": 0}))
    text = render(load_runs([folder]), "markdown")
    assert "0.500*" in text and "sample" in text


def test_group_names_are_those_of_the_catalogue():
    assert {entry.group for entry in catalog().values()} == set(GROUPS)


def test_leakage_follows_from_what_each_model_was_trained_on():
    assert leakage_of("metafam", PRETRAINING) == "free" and leakage_of("metafam", ("*",)) == "trained-on"
    assert leakage_of("nl-0", PRETRAINING) == "free" and leakage_of("nl-0", (*PRETRAINING, "nell995")) == "related"
    assert leakage_of("wn18rr-v1", ()) == "free" and leakage_of("wn18rr-v1", PRETRAINING) == "related"
    assert leakage_of("db100k", ("dbpedia50.txt",)) == "related" and leakage_of("my own", ()) == "unknown"


def test_graphs_that_a_model_was_trained_on_are_in_no_mean_and_no_test(tmp_path):
    trained = {"name": "four", "hash": "four", "trained_on": [*PRETRAINING, "nell995"]}
    one = write(tmp_path / "one", *(result(name, "ours", 0.5) for name in ("nl-0", "nell995", "fb15k237")))
    two = write(
        tmp_path / "two", *(result(name, "four", 0.4) | {"model": trained} for name in ("nl-0", "nell995", "fb15k237"))
    )
    runs = load_runs([one, two])
    assert common_graphs(runs) == ["nl-0"] and common_graphs(runs[:1]) == ["nl-0", "nell995"]
    assert leakage_groups(common_graphs(runs), runs)["leakage-free families"] == []


def test_only_a_result_that_left_triples_out_is_marked_as_a_sample(tmp_path):
    limit = {"triples": 100, "seed": 0}
    whole = result("nl-0", "ours", 0.5, limit=limit, triples=80, triples_in_split=80)
    part = result("nl-50", "ours", 0.4, limit=limit, triples=100, triples_in_split=300)
    table = report_tables(load_runs([write(tmp_path / "one", whole, part)]))[-1]
    cells = {row[0]: row[2] for row in table.rows}
    assert cells == {"nl-0": "0.500", "nl-50": "0.400*"}


def test_queries_are_compared_where_both_runs_kept_their_ranks(tmp_path):
    paths = []
    for name, above in (("one", [0, 1, 3]), ("two", [1, 1, 9])):
        paths.append(tmp_path / f"{name}.npz")
        np.savez(paths[-1], above=above, tied=[0, 0, 0], total=[9, 9, 9])
    found = compare_queries(paths[:1], paths[1:])
    low, high = found.interval
    assert (found.graphs, found.queries) == (1, 3) and found.mean_difference == pytest.approx((0.5 + 0.15) / 3)
    assert low <= found.mean_difference <= high and low == 0.0
    np.savez(paths[1], above=[1, 1, 9], tied=[0, 0, 0], total=[9, 9, 8])
    assert compare_queries(paths[:1], paths[1:]) is None, "another filter, other queries"


def ranks(path, above):
    path.parent.mkdir(exist_ok=True)
    np.savez(path, above=above, tied=np.zeros_like(above), total=np.full_like(above, 99))
    return path


def test_test_over_queries_gives_every_graph_the_same_weight(tmp_path):
    """Two graphs of unlike size; the reckoning by hand has each graph's mean and its standard error."""
    rng = np.random.default_rng(3)
    above = {size: rng.integers(0, 30, size=(2, size)) for size in (40, 400)}
    paths = [[ranks(tmp_path / f"{size}-{i}.npz", above[size][i]) for size in above] for i in (0, 1)]
    differences = [1 / (1 + one) - 1 / (1 + two) for one, two in above.values()]
    mean = sum(d.mean() for d in differences) / 2
    error = math.sqrt(sum(d.var(ddof=1) / len(d) for d in differences)) / 2
    found = compare_queries(*paths)
    assert found.mean_difference == pytest.approx(mean) and found.queries == 440
    assert found.p_value == pytest.approx(math.erfc(abs(mean) / error / math.sqrt(2)))
    width = found.interval[1] - found.interval[0]
    assert width == pytest.approx(2 * 1.96 * error, rel=0.15), "drawn and reckoned spread agree"
    assert compare_queries(paths[0], paths[0]).p_value == 1.0


def test_two_folders_with_ranks_are_compared_over_graphs_and_over_queries(tmp_path):
    for name, mrr, above in (("ours", 0.9, [0, 0, 0, 1]), ("other", 0.3, [3, 4, 2, 5])):
        folder = write(tmp_path / name, result("nl-0", name, mrr), result("nl-50", name, mrr))
        ranks(folder / "ranks" / "nl-0.npz", np.array(above))
    runs = load_runs([tmp_path / "ours", tmp_path / "other"])
    table = next(table for table in report_tables(runs) if table.name == "comparisons")
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert cells["first − second"] == "ours − other" and cells["graphs"] == "2"
    assert cells["queries"] == "4 of 1 graphs" and cells["interval over queries"].startswith("+0.")
    assert cells["p over queries"] == "< 0.0001"
    assert {tuple(row[-3:]) for row in table.rows[1:]} == {("", "", "")}, "published figures have no ranks"


def test_public_runs_have_the_means_that_the_models_reports_give():
    figures = published()
    counts = {model: len(paper_groups(list(report.results))["total"]) for model, report in figures.reports.items()}
    assert counts == {"TRIX": 41, "MOTIF": 41, "FLOCK": 40, "KG-ICL": 41, "SEMMA": 50}
    for model, report in figures.reports.items():
        assert set(report.results) | set(report.tails) <= set(catalog()) and "commit" in report.origin
        assert all(0 < row["mrr"] < row["hits@10"] < 1 for row in (*report.results.values(), *report.tails.values()))
        for group, mean in figures.others.get(model, {}).items():
            rows = [row["mrr"] for slug, row in report.results.items() if catalog()[slug].group == group]
            assert sum(rows) / len(rows) == pytest.approx(mean, abs=0.003), (model, group)


def test_public_runs_stand_beside_ours_over_the_same_graphs_only(tmp_path):
    folder = write(tmp_path / "one", *(result(name, "ours", mrr) for name, mrr in (("fb-25", 0.5), ("nl-0", 0.1))))
    runs = load_runs([folder])
    tables = {table.name: table for table in report_tables(runs)}
    rows = {row[0]: row for row in tables["public"].rows}
    assert rows["TRIX (public run)"] == ["TRIX (public run)", "inductive e,r", "2", "0.390", "0.600", "0.300", "0.400"]
    assert rows["FLOCK (public run)"] == [
        "FLOCK (public run)",
        "inductive e,r",
        "1 of 2",
        "0.378",
        "0.609",
        "0.100",
        "0.200",
    ]
    graphs = tables["graphs"]
    assert list(graphs.columns[-5:]) == ["TRIX MRR", "MOTIF MRR", "FLOCK MRR", "KG-ICL MRR", "SEMMA MRR"]
    assert [row[-3] for row in graphs.rows] == ["", "0.378"] and "LckyLke/sotaKGFMs" in graphs.note
    against = next(row for row in tables["comparisons"].rows if row[0] == "ours − FLOCK (public run)")
    assert against[1] == "1" and against[5] == "-0.2783"


def test_no_column_for_a_model_without_a_figure_at_hand(tmp_path):
    sparse = result("fb15k237-10", "ours", 0.2, tail={"mrr": 0.3, "hits@10": 0.4})
    tables = {table.name: table for table in report_tables(load_runs([write(tmp_path / "one", sparse)]))}
    assert "public" not in tables and tables["graphs"].columns[-1] == "SEMMA MRR"
    assert [row[-1] for row in tables["graphs"].rows] == ["", "0.247"], "tails stand in the row of tails"
    assert not any("TRIX" in column for column in tables["graphs"].columns)


def test_sparse_sets_show_their_tails_beside_both_directions(tmp_path):
    record = result("fb15k237-10", "ours", 0.2, tail={"mrr": 0.3, "hits@10": 0.4})
    table = report_tables(load_runs([write(tmp_path / "one", record)]))[-1]
    assert [row[:3] for row in table.rows] == [
        ["fb15k237-10", "transductive", "0.200"],
        ["fb15k237-10, tails", "", "0.300"],
    ]
