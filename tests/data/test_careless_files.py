"""Tables as other tools leave them: what can't be a name is refused and not turned into one."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gamma_kg.data.read import read_triples
from gamma_kg.errors import DataError


def test_a_struct_is_no_name(tmp_path: Path) -> None:
    pl.DataFrame({"head": [{"x": "a"}], "relation": ["r"], "tail": ["b"]}).write_parquet(tmp_path / "f.parquet")
    with pytest.raises(DataError, match="names must be text or numbers, but head is Struct"):
        read_triples(tmp_path / "f.parquet")


def test_a_hole_that_a_tool_wrote_as_nan_is_empty(tmp_path: Path) -> None:
    frame = pl.DataFrame({"head": ["a", "b"], "relation": ["r", "r"], "tail": [1.0, float("nan")]})
    frame.write_parquet(tmp_path / "f.parquet")
    (tmp_path / "f.jsonl").write_text('["a","r",1.0]\n["b","r",NaN]\n')
    for name in ("f.parquet", "f.jsonl"):
        with pytest.raises(DataError, match="the tail"):
            read_triples(tmp_path / name)
        assert len(read_triples(tmp_path / name, skip_bad_lines=True).triples) == 1


def test_a_role_that_two_columns_have_must_be_chosen(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("head,relation,tail,Head\na,r,b,c\n")
    with pytest.raises(DataError, match="2 columns are named 'head'; choose by position"):
        read_triples(tmp_path / "f.csv")
    assert read_triples(tmp_path / "f.csv", columns=[0, 1, 2]).entities[0] == "a"


def test_a_link_to_nothing_says_so(tmp_path: Path) -> None:
    (tmp_path / "f.tsv").symlink_to("gone.tsv")
    with pytest.raises(DataError, match=r"a symbolic link to gone.tsv, where no file is"):
        read_triples(tmp_path / "f.tsv")


def test_an_empty_name_is_not_the_folder_one_is_in() -> None:
    with pytest.raises(DataError, match="the name of the graph is empty"):
        read_triples("")
