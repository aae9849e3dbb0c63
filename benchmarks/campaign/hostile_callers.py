"""What people and programs may ask: questions that mean too much, requests that no page of the server sends."""

from __future__ import annotations

import gzip
import http.client
import json
from pathlib import Path
from urllib.parse import urlsplit

from campaign.bombs import LAUGHS, RDF
from campaign.killed_server import Server
from campaign.lines import Line
from campaign.refusing import refused
from campaign.zygote import Zygote

TIED = " ".join(f"{{ ?y{i} <a> ?y{i + 1} }} UNION {{ ?y{i} <b> ?y{i + 1} }}" for i in range(22))
QUESTIONS = {
    "unions that multiply": f"SELECT ?x {{ ?x <a> ?y0 . {TIED} }}",
    "alternatives that multiply": f"SELECT ?x {{ <Kenya> {'/'.join(['(<borders>|<a>)'] * 30)} ?x }}",
    "a chain of 1,000 steps": f"SELECT ?x {{ <Kenya> {'/'.join(['<borders>'] * 1000)} ?x }}",
    "deep braces": "SELECT ?x {" + "{" * 3000 + " <a> <r> ?x " + "}" * 3000 + "}",
    "deep paths": "SELECT ?x { <a> " + "^(" * 1000 + "<r>" + ")" * 1000 + " ?x }",
    "deep denials": "SELECT ?x { <a> <r> ?x " + "FILTER NOT EXISTS { ?x <r> <b> " * 200 + "}" * 200 + "}",
    "400 unions": "SELECT ?x {" + " UNION ".join(["{ <a> <r> ?x }"] * 400) + "}",
    "a string without end": 'SELECT ?x { ?x <r> """' + "\\a" * 4000,
    "a deep list": "[" * 9000,
    "a chain as a list": json.dumps(["Kenya", ["borders"] * 900]),
    "a wide list": json.dumps([["Kenya", ["b"]]] * 600),
}


def questions(line: Line, folder: Path, zygote: Zygote) -> None:
    """Short texts that mean more than any machine can do."""
    for name, question in QUESTIONS.items():
        refused(line, f"a question with {name}", ["ask", "demo", question], folder, zygote)


def requests(line: Line, folder: Path, zygote: Zygote) -> None:
    """What a caller of the server may send: every answer is a refusal in words, and the server goes on."""
    server = Server(zygote, folder, graph="demo")
    base, graph = server.address, "/v1/graphs/demo"

    def send(what: str, method: str, path: str, body: bytes = b"", **headers: str) -> None:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        address = urlsplit(base)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=120)
        connection.request(method, path, body or None, {"Content-Type": "application/json"} | names)
        answer = connection.getresponse()
        said = answer.read()
        line.expect(400 <= answer.status < 500, f"{what}: HTTP {answer.status} {said[:200]!r}")
        connection.close()

    for name, question in QUESTIONS.items():
        send(f"a question with {name}", "POST", f"{graph}/ask", json.dumps({"question": question}).encode())
    for name, text in (("deep", b"[" * 900_000), ("no JSON", b"\xff\xfe"), ("a long number", b"9" * 9_000)):
        for path in ("predict", "ask", "explain", "jobs"):
            send(f"a body that is {name}", "POST", f"{graph}/{path}", text)
    send("a deep list", "POST", f"{graph}/ask", b'{"question":' + b"[" * 800 + b"]" * 800 + b"}")
    decision = b'{"head":"Kenya","relation":"borders","tail":"Uganda","verdict":"accepted"}'
    for origin in ("http://[", "null", "http://evil.example", f"{base}@evil.example"):
        send(f"from {origin}", "PUT", f"{graph}/decisions", decision, Origin=origin)
    for host in ("evil.example", "127.0.0.1.evil.example", "["):
        send(f"to {host}", "GET", "/v1/graphs", Host=host)
    for path in ("/static/../../../etc/passwd", "/static/%2e%2e/%2e%2e/etc/passwd", "/v1/graphs/..%2f..%2fetc",
                 f"{graph}/accepted/..%2fx", f"{graph}/entity?name=%00"):  # fmt: skip
        send(path, "GET", path)
    rows = b"a\tr\tb\n" * 2_000_000
    for name, content in (("f.tsv", gzip.compress(rows)), ("f.exe", b"a"), ("f.tsv", b""), ("f.tsv", b"a" * (20 << 20)),
                          ("f.ttl", b"<a:a> <a:b> " + b"[ <a:b> " * 100_000), ("../../f.parquet", b"PAR1"),
                          ("f.rdf", (RDF % (f'<!ENTITY e0 "x">{LAUGHS}', "&e12;")).encode())):  # fmt: skip
        body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n' % name.encode()
        form = {"Content_Type": "multipart/form-data; boundary=x"}
        send(f"the file {name}", "POST", "/v1/graphs", body + content + b"\r\n--x--\r\n", **form)
    line.expect(len(server.call("/v1/graphs")["graphs"]) == 1, "a file that does harm is held")
    line.expect(server.end() == 0, server.said[-300:])
    line.expect("raceback" not in server.said, f"the log: {server.said[-300:]}")
