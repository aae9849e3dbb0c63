import json
import zipfile
from dataclasses import replace

import pytest

from gamma_kg.data import download
from gamma_kg.data.benchmark import RECORD, file_sha256, load_benchmark
from gamma_kg.data.catalog import Download, FileFacts, dataset
from gamma_kg.data.download import fetch
from gamma_kg.errors import DataError
from loopback import FileServer, serving

TRAIN = "a\tr\tb\nb\tr\tc\n" * 500
TEST = "c\tr\ta\n"


@pytest.fixture
def server():
    files = FileServer()
    with serving(files):
        yield files


def sha256(text, tmp_path):
    (tmp_path / "hash").write_text(text)
    return file_sha256(tmp_path / "hash")


def entry_for(server, tmp_path, downloads=None, **hashes):
    """The catalogue's yago310, with files from the local server."""
    lines = {"train.txt": 1000, "valid.txt": 1, "test.txt": 1}
    plain = [Download(name, (f"{server.url}/{name}",)) for name in lines]
    files = {name: FileFacts(count, hashes.get(name.split(".")[0])) for name, count in lines.items()}
    server.files.update({"train.txt": TRAIN.encode(), "valid.txt": TEST.encode(), "test.txt": TEST.encode()})
    return replace(dataset("yago310"), downloads=tuple(downloads or plain), files=files)


def test_fetched_set_can_be_loaded_and_is_not_fetched_twice(server, tmp_path):
    heard = []
    entry = entry_for(server, tmp_path, train=sha256(TRAIN, tmp_path))
    assert fetch(entry, tmp_path, lambda *event: heard.append(event)) == ["train.txt", "valid.txt", "test.txt"]
    assert (tmp_path / "yago310" / "train.txt").read_text() == TRAIN
    assert heard[0][1:] == (len(TRAIN), len(TRAIN))
    assert len(load_benchmark("yago310", tmp_path).split("test").graph) == 1000
    assert set(json.loads((tmp_path / "yago310" / RECORD).read_text())) == {"train.txt", "valid.txt", "test.txt"}
    asked = len(server.requests)
    assert fetch(entry, tmp_path) == [] and len(server.requests) == asked
    (tmp_path / "yago310" / "test.txt").write_text("a\tr\ta\n")
    with pytest.raises(DataError, match="changed or cut short"):
        load_benchmark("yago310", tmp_path)


def test_broken_download_goes_on_where_it_stopped(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    entry = entry_for(server, tmp_path, train=sha256(TRAIN, tmp_path))
    server.hang_up_after = 3000
    with pytest.raises(DataError, match="run the command again"):
        fetch(entry, tmp_path)
    assert not (tmp_path / "yago310" / "train.txt").exists()
    server.hang_up_after = None
    fetch(entry, tmp_path)
    assert ("train.txt", "bytes=3000-") in server.requests
    assert (tmp_path / "yago310" / "train.txt").read_text() == TRAIN


def test_changed_download_is_refused_with_both_hashes_and_leaves_nothing_behind(server, tmp_path):
    expected = sha256(TRAIN, tmp_path)
    entry = entry_for(server, tmp_path, train=expected)
    server.files["train.txt"] = changed = TRAIN.replace("b\tr\tc", "c\tr\tb", 1).encode()
    with pytest.raises(DataError) as caught:
        fetch(entry, tmp_path)
    assert expected in str(caught.value) and sha256(changed.decode(), tmp_path) in str(caught.value)
    assert list((tmp_path / "yago310").iterdir()) == []
    server.files["train.txt"] = TRAIN.encode()
    fetch(entry, tmp_path)


def test_cut_file_is_refused_where_only_its_length_is_known(server, tmp_path):
    entry = entry_for(server, tmp_path)
    server.files["train.txt"] = TRAIN[: len(TRAIN) // 2].encode()
    with pytest.raises(DataError, match="expected 1000 lines, found 500"):
        fetch(entry, tmp_path)


def test_downloads_are_converted_joined_and_taken_from_archives(server, tmp_path):
    entry = entry_for(server, tmp_path)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("data/train.triples", "a\tb\tr\r\n" * 1000)
        archive.writestr("data/valid", "c r a")
    server.files["all.zip"] = (tmp_path / "all.zip").read_bytes()
    downloads = (
        Download("train.txt", (f"{server.url}/all.zip",), member="data/train.triples", columns="htr"),
        Download("valid.txt", (f"{server.url}/all.zip",), member="data/valid", split="whitespace"),
        Download("test.txt", (f"{server.url}/gone.txt", f"{server.url}/test.txt")),
        Download("test.txt", (f"{server.url}/valid.txt",)),
    )
    fetch(replace(entry, downloads=downloads), tmp_path)
    folder = tmp_path / "yago310"
    assert (folder / "train.txt").read_text() == "a\tr\tb\n" * 1000
    assert (folder / "valid.txt").read_text() == "c\tr\ta\n"
    assert (folder / "test.txt").read_text() == TEST + TEST
    assert [name for name, _ in server.requests].count("all.zip") == 1


def test_wrong_columns_name_the_line(server, tmp_path):
    entry = entry_for(server, tmp_path)
    server.files["train.txt"] = b"a\tr\tb\na\tr\n"
    with pytest.raises(DataError, match="line 2: expected 3 columns, found 2"):
        fetch(entry, tmp_path)


def test_without_a_network_the_error_says_where_to_put_the_files(tmp_path):
    entry = replace(dataset("nl-25"), downloads=(Download("train.txt", ("http://127.0.0.1:9/train.txt",)),))
    with pytest.raises(DataError, match=r"can't be reached.*Without a network, put train\.txt.*nl-25"):
        fetch(entry, tmp_path)


def test_of_two_fetches_of_one_set_the_second_is_told_and_the_first_ends_whole(server, tmp_path):
    entry = entry_for(server, tmp_path, train=sha256(TRAIN, tmp_path))
    refused = []

    def second(*event):
        if not refused:
            with pytest.raises(DataError, match="fetching yago310: another process"):
                fetch(entry, tmp_path)
            refused.append(event)

    assert fetch(entry, tmp_path, second) == ["train.txt", "valid.txt", "test.txt"]
    assert refused and (tmp_path / "yago310" / "train.txt").read_text() == TRAIN
