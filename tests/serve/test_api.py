"""What a program gets over REST: answers as the library gives them, errors in the words of the command line."""

from __future__ import annotations

import io
import time
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest
from fastapi.testclient import TestClient

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg import ask as ask_question
from gamma_kg.serve import schemas


def ask(client: TestClient, *queries: dict[str, str], **options: Any) -> Any:
    return client.post("/v1/graphs/family/predict", json={"queries": list(queries), **options})


def finished(client: TestClient, graph: str = "family", **request: Any) -> dict[str, Any]:
    job = client.post(f"/v1/graphs/{graph}/jobs", json=request).json()
    for _ in range(600):
        job = client.get(f"/v1/jobs/{job['id']}").json()
        if job["state"] not in ("waiting", "running"):
            return job
        time.sleep(0.05)
    raise AssertionError(f"the job did not end: {job}")


def test_answers_are_those_of_the_library_for_heads_tails_and_relations(
    client: TestClient, family: KnowledgeGraph, small_gamma: Gamma
) -> None:
    queries = [
        {"head": "Ann", "relation": "mother of"},
        {"relation": "mother of", "tail": "Finn"},
        {"head": "Ann", "tail": "Dan"},
    ]
    answer = ask(client, *queries, top_k=3)
    schemas.PredictResponse.model_validate_json(answer.text)
    results = answer.json()["results"]
    for query, result in zip(queries, results, strict=True):
        expected = small_gamma.predict(family, **query, top_k=3)
        assert [(a["name"], a["score"], a["probability"]) for a in result["answers"]] == [
            (p.name, p.score, p.probability) for p in expected
        ]


def test_known_facts_are_left_out_marked_or_alone(client: TestClient) -> None:
    query = {"head": "Ann", "relation": "mother of"}
    names = {
        known: [
            (a["name"], a["known"]) for a in ask(client, query, known=known, top_k=20).json()["results"][0]["answers"]
        ]
        for known in ("exclude", "include", "only")
    }
    assert {name for name, _ in names["only"]} == {"Bob", "Cleo"}
    assert not any(known for _, known in names["exclude"]) and len(names["include"]) == 8
    assert {name for name, known in names["include"] if known} == {"Bob", "Cleo"}


def test_answers_can_be_narrowed_to_a_role_and_a_least_probability(client: TestClient) -> None:
    query = {"head": "Eve", "relation": "mother of"}
    fathers = ask(client, query, answer_type="head of father of", top_k=8).json()["results"][0]["answers"]
    assert {a["name"] for a in fathers} == {"Dan", "Gus"}
    everything = ask(client, query, top_k=8).json()["results"][0]["answers"]
    least = everything[2]["probability"]
    kept = ask(client, query, top_k=8, min_probability=least).json()["results"][0]["answers"]
    assert kept == everything[:3]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"queries": [{"head": "Anne", "relation": "mother of"}]}, 404, "did you mean 'Ann'"),
        ({"queries": [{"head": "Ann"}]}, 400, "give exactly two of head, relation and tail"),
        ({"queries": []}, 422, "queries"),
        ({"queries": [{"head": "Ann", "relation": "mother of"}], "topk": 3}, 422, "topk"),
        ({"queries": [{"head": "Ann", "relation": "mother of"}], "top_k": 100_000}, 400, "1..1000"),
        ({"queries": [{"head": "Ann", "relation": "mother of"}] * 300}, 400, "1 to 256 questions"),
        (
            {"queries": [{"head": "Ann", "relation": "mother of"}], "answer_type": "elf"},
            404,
            "no entity is named 'elf'",
        ),
    ],
)
def test_errors_are_problems_with_the_sentence_of_the_command_line(
    client: TestClient, body: Any, status: int, words: str
) -> None:
    answer = client.post("/v1/graphs/family/predict", json=body)
    assert answer.status_code == status and answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (
        problem["status"] == status and words in problem["detail"] and problem["type"].startswith("urn:gamma:problem:")
    )


def test_unknown_graphs_and_jobs_are_problems_too(client: TestClient) -> None:
    assert "did you mean 'family'" in client.get("/v1/graphs/famly").json()["detail"]
    assert client.get("/v1/jobs/none").status_code == 404
    assert client.get("/v1/nothing").headers["content-type"] == "application/problem+json"


def test_an_entity_shows_all_its_facts_page_by_page(client: TestClient) -> None:
    first = client.get("/v1/graphs/family/entity", params={"name": "Ann", "limit": 3}).json()
    rest = client.get("/v1/graphs/family/entity", params={"name": "Ann", "limit": 3, "offset": 3}).json()
    assert first["degree"] == 4 and len(first["facts"]) == 3 and len(rest["facts"]) == 1
    facts = {(f["head"], f["relation"], f["tail"]) for f in first["facts"] + rest["facts"]}
    assert facts == {
        ("Ann", "mother of", "Bob"),
        ("Ann", "mother of", "Cleo"),
        ("Ann", "married to", "Dan"),
        ("Dan", "married to", "Ann"),
    }


def test_the_neighbourhood_is_given_as_groups_and_as_a_picture(client: TestClient) -> None:
    groups = client.get("/v1/graphs/family/neighbourhood", params={"name": "Ann", "shown": 1}).json()["groups"]
    assert {"relation": "mother of", "is_head": True, "count": 2, "others": ["Bob"]} in groups
    picture = client.get("/v1/graphs/family/neighbourhood.svg", params={"name": "Ann"})
    assert picture.headers["content-type"] == "image/svg+xml"
    assert "Ann" in " ".join(ElementTree.fromstring(picture.text).itertext())


def test_a_question_with_several_steps_is_answered_as_by_the_library(
    client: TestClient, family: KnowledgeGraph, small_gamma: Gamma
) -> None:
    question = "SELECT ?x { <Ann> <married to> ?y . ?y <father of> ?x } LIMIT 3"
    found = client.post("/v1/graphs/family/ask", json={"question": question}).json()
    schemas.AskResponse.model_validate(found)
    expected = ask_question(family, question, small_gamma)
    assert [(a["name"], a["probability"], a["bindings"]) for a in found["answers"]] == [
        (a.name, pytest.approx(a.probability, abs=1e-6), a.bindings) for a in expected
    ]
    lists = client.post(
        "/v1/graphs/family/ask", json={"question": ["Ann", ["married to", "father of"]], "top_k": 3, "only_new": True}
    ).json()["answers"]
    assert len(lists) == 3 and not any(a["follows"] for a in lists)


def test_conditions_line_by_line_ask_what_the_sparql_of_them_asks(client: TestClient) -> None:
    lines = [
        {"head": "Ann", "relation": "married to", "tail": "?y"},
        {"head": "?y", "relation": "father of", "tail": "?child"},
        {"head": "?child", "relation": "sibling of", "tail": "Bob", "join": "not"},
    ]
    asked = {"question": {"find": "?child", "conditions": lines}, "logic": "godel"}
    found = client.post("/v1/graphs/family/ask", json=asked).json()
    schemas.AskResponse.model_validate(found)
    sparql = "SELECT ?child { <Ann> <married to> ?y . ?y <father of> ?child MINUS { ?child <sibling of> <Bob> } }"
    assert found == client.post("/v1/graphs/family/ask", json={"question": sparql, "logic": "godel"}).json()
    assert found != client.post("/v1/graphs/family/ask", json={"question": sparql}).json()


def test_predicted_steps_come_with_the_reasons_that_explain_gives(
    client: TestClient, family: KnowledgeGraph, small_gamma: Gamma
) -> None:
    asked = {"question": "SELECT ?x { <Ann> <married to> ?y . ?y <father of> ?x }", "only_new": True, "why": True}
    found = client.post("/v1/graphs/family/ask", json={**asked, "top_k": 2}).json()
    schemas.AskResponse.model_validate(found)
    steps = [step for answer in found["answers"] for step in answer["steps"]]
    assert any(not step["known"] for step in steps) and all(step["known"] == (step["why"] is None) for step in steps)
    step = next(step for step in steps if not step["known"])
    expected = small_gamma.explain(family, **{part: step[part] for part in ("head", "relation", "tail")})
    assert step["why"]["score"] == expected.score
    refused = client.post("/v1/graphs/family/ask", json={**asked, "top_k": 11})
    assert refused.status_code == 400 and "10 answers at once" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"conditions": [{"head": "Ann", "relation": "mother of", "tail": "?y"}]}, "no condition mentions it"),
        ("SELECT ?x ?y { ?x <mother of> ?y }", "one free variable"),
        ("SELECT ?x { <Anna> <mother of> ?x }", "no entity is named"),
        (["Ann", ["mother of"] * 21], "may have 20 steps here, this one has 21"),
        ([[]], "is no chain"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused_with_a_reason(
    client: TestClient, question: object, said: str
) -> None:
    refused = client.post("/v1/graphs/family/ask", json={"question": question})
    assert 400 <= refused.status_code < 500 and said in refused.json()["detail"]


def test_reasons_are_those_of_the_library_and_change_when_a_fact_is_gone(
    client: TestClient, family: KnowledgeGraph, small_gamma: Gamma
) -> None:
    fact = {"head": "Bob", "relation": "sibling of", "tail": "Cleo"}
    found = client.post("/v1/graphs/family/explain", json=fact).json()
    schemas.Explained.model_validate(found)
    expected = small_gamma.explain(family, **fact)
    assert found["score"] == expected.score and len(found["paths"]) == len(expected.paths)
    gone = {key: found["facts"][0][key] for key in ("head", "relation", "tail")}
    without = client.post("/v1/graphs/family/explain", json={**fact, "without": [gone]}).json()
    assert without["score"] == pytest.approx(found["score"] - found["facts"][0]["drop"], abs=1e-5)
    assert ElementTree.fromstring(client.post("/v1/graphs/family/explain.svg", json=fact).text).tag.endswith("svg")


def test_a_completion_job_finds_facts_and_gives_them_in_every_format(client: TestClient) -> None:
    job = finished(client, kind="complete", top=5, min_cases=0)
    assert job["state"] == "done" and job["done"] == job["total"] > 0
    facts = client.get(f"/v1/jobs/{job['id']}/result").json()["facts"]
    assert facts and facts == sorted(facts, key=lambda f: -f["probability"])
    for kind, read in (("csv", pl.read_csv), ("parquet", pl.read_parquet)):
        frame = read(io.BytesIO(client.get(f"/v1/jobs/{job['id']}/result/{kind}").content))
        assert frame["head"].to_list() == [f["head"] for f in facts]
    assert "<urn:gamma:" in client.get(f"/v1/jobs/{job['id']}/result/nt").text
    tsv = client.get(f"/v1/jobs/{job['id']}/result/tsv")
    assert tsv.headers["content-disposition"] == 'attachment; filename="family-facts.tsv"'


def test_a_job_about_one_entity_finds_facts_about_it_only(client: TestClient) -> None:
    whole = finished(client, kind="complete", min_cases=0)
    name = client.get(f"/v1/jobs/{whole['id']}/result").json()["facts"][0]["head"]
    job = finished(client, kind="complete", entity=name, min_cases=0)
    facts = client.get(f"/v1/jobs/{job['id']}/result").json()["facts"]
    assert facts and all(name in (f["head"], f["tail"]) for f in facts)
    assert 0 < job["total"] < whole["total"]


def test_progress_comes_as_events_until_the_end(client: TestClient) -> None:
    job = client.post("/v1/graphs/family/jobs", json={"kind": "complete"}).json()
    events = client.get(f"/v1/jobs/{job['id']}/events").text
    assert events.startswith("event: progress\ndata: {") and events.endswith("event: end\ndata: {}\n\n")
    assert '"state": "done"' in events


def test_calibrating_too_small_a_graph_fails_in_words(client: TestClient) -> None:
    job = finished(client, kind="calibrate")
    assert job["state"] == "failed" and "too few facts" in job["error"]


def test_accepted_facts_can_be_kept_and_taken_back(client: TestClient) -> None:
    fact = {"head": "Eve", "relation": "married to", "tail": "Gus"}
    for verdict in ("accepted", "rejected", None, "accepted"):
        answer = client.put("/v1/graphs/family/decisions", json={**fact, "verdict": verdict, "probability": 0.5})
        assert answer.status_code == 200
    assert client.get("/v1/graphs/family/decisions").json() == {"accepted": [fact], "rejected": []}
    nt = client.get("/v1/graphs/family/accepted/nt").text
    assert "<urn:gamma:name:Eve> <urn:gamma:name:married%20to> <urn:gamma:name:Gus> ." in nt
    wrong = client.put("/v1/graphs/family/decisions", json={**fact, "tail": "Guss", "verdict": "accepted"})
    assert wrong.status_code == 404


def test_an_uploaded_graph_can_be_asked_and_removed(client: TestClient) -> None:
    facts = "".join(f"p{i}\tknows\tp{i + 1}\n" for i in range(9)).encode()
    made = client.post("/v1/graphs", files={"file": ("../../my facts.tsv", facts)})
    assert made.status_code == 201 and made.json()["id"] == "my-facts" and made.json()["facts"] == 9
    answers = client.post("/v1/graphs/my-facts/predict", json={"queries": [{"head": "p0", "relation": "knows"}]})
    assert answers.status_code == 200
    assert client.delete("/v1/graphs/my-facts").status_code == 204
    assert client.get("/v1/graphs/my-facts").status_code == 404
    assert client.delete("/v1/graphs/family").status_code == 400


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("facts.exe", b"a\tb\tc\n", "endings"),
        ("facts.tsv.gz", b"a\tb\tc\n", "endings"),
        ("facts.tsv", b"a\tb\n", "facts.tsv"),
        ("facts.parquet", b"PAR1 not really", "facts.parquet"),
        ("facts.ttl", b"<a> <b>", "facts.ttl"),
        ("facts.tsv", b"", "facts.tsv"),
    ],
)
def test_a_file_that_is_no_graph_is_refused_by_its_own_name(
    client: TestClient, name: str, content: bytes, words: str
) -> None:
    answer = client.post("/v1/graphs", files={"file": (name, content)})
    assert answer.status_code == 400, answer.text
    assert words in answer.json()["detail"] and "gamma-serve-" not in answer.text


def test_the_openapi_document_describes_all_routes_and_docs_shows_them_without_the_network(client: TestClient) -> None:
    document = client.get("/v1/openapi.json").json()
    page = client.get("/docs").text
    for path in document["paths"]:
        assert path in page
    assert "http" not in page.replace("http://127.0.0.1:8765", "").replace("http-equiv", "")


def test_health_readiness_and_figures(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "alive"} and client.get("/readyz").status_code == 200
    ask(client, {"head": "Ann", "relation": "mother of"})
    figures = client.get("/metrics").text
    assert 'gamma_requests_total{method="POST",route="/v1/graphs/{graph}/predict",status="200"} 1.0' in figures
    assert "gamma_questions 1.0" in figures
