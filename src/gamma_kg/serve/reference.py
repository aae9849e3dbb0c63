"""The OpenAPI document as lists to put on a page: no outside script is needed to read it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

ORDER = ("get", "post", "put", "delete")


@dataclass(frozen=True)
class Parameter:
    name: str
    where: str
    kind: str
    required: bool
    description: str


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    summary: str
    parameters: list[Parameter]
    body: list[Parameter]
    answers: list[tuple[str, str, str]]  # status, media type, what
    example: str
    anchor: str = field(default="")


def operations(document: dict[str, Any]) -> dict[str, list[Operation]]:
    """Operations by their tag, in the order of the document."""
    schemas = document.get("components", {}).get("schemas", {})
    groups: dict[str, list[Operation]] = {}
    for path, item in document["paths"].items():
        for method in ORDER:
            if method in item:
                one = _operation(method, path, item[method], schemas)
                groups.setdefault(item[method].get("tags", ["other"])[0], []).append(one)
    return groups


def _operation(method: str, path: str, spec: dict[str, Any], schemas: dict[str, Any]) -> Operation:
    parameters = [
        Parameter(p["name"], p["in"], _kind(p["schema"]), p.get("required", False), p.get("description", ""))
        for p in spec.get("parameters", [])
    ]
    body: list[Parameter] = []
    example = ""
    for media, content in spec.get("requestBody", {}).get("content", {}).items():
        schema = _resolved(content["schema"], schemas)
        wanted = schema.get("required", [])
        for name, part in schema.get("properties", {}).items():
            body.append(Parameter(name, media, _kind(part), name in wanted, part.get("description", "")))
        for given in schema.get("examples", [])[:1]:
            example = json.dumps(given)
    answers = [
        (status, media, _kind(content.get("schema", {})) or answer.get("description", ""))
        for status, answer in spec.get("responses", {}).items()
        for media, content in answer.get("content", {"": {}}).items()
    ]
    return Operation(
        method.upper(), path, spec.get("description") or spec.get("summary", ""), parameters, body, answers, example,
        anchor=spec.get("operationId", ""),
    )  # fmt: skip


def _resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rsplit("/", 1)[-1]
    found: dict[str, Any] = schemas.get(name, schema)
    return found


def _kind(schema: dict[str, Any]) -> str:
    """A type in a few words: 'integer 1..1000', 'list of Fact'."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "anyOf" in schema:
        return " or ".join(_kind(part) for part in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    kind = str(schema.get("type", ""))
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    low, high = schema.get("minimum"), schema.get("maximum")
    return f"{kind} {low}..{high}" if low is not None and high is not None else kind
