"""Templates: how values are shown, and what every page is given.

All names go through the templates' escaping, and what can't be seen in them is made visible (`io/shown.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from gamma_kg.io.shown import shown
from gamma_kg.serve import schemas
from gamma_kg.serve.service import Service

Render = Callable[..., HTMLResponse]
# An empty field of a form means that nothing was given.
Given = Annotated[str, Query(max_length=schemas.MAX_NAME)]
WIDTH = re.compile(r'<svg [^>]*?width="([\d.]+)')
FITTING = 832  # pixels: a wider picture may be made smaller, down to this
LONG_HEADING = 60  # letters; beyond these it is set in smaller type

SECTIONS = {
    "ask": "ask", "question": "ask", "why": "ask", "missing": "missing", "jobs": "missing", "graphs": "graphs",
    "docs": "docs",
}  # fmt: skip


def address(path: str, **parameters: Any) -> str:
    """A path with its query; what is None or empty is left out."""
    given = {name: value for name, value in parameters.items() if value not in (None, "", [], ())}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def environment() -> Environment:
    env = Environment(
        loader=PackageLoader("gamma_kg.serve"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: shown(value) if type(value) is str else value,
    )
    env.globals["address"] = address
    env.globals["long"] = lambda heading: Markup(' class="long"') if len(heading) > LONG_HEADING else ""
    env.filters["percent"] = lambda p: f"{p:.1%}" if p >= 0.001 or p == 0 else "< 0.1%"
    env.filters["count"] = lambda number: f"{number:,}"
    env.filters["sentence"] = sentence
    env.filters["exact"] = lambda text: Markup(escape(text))  # for values that are sent back
    return env


def sentence(text: str) -> str:
    """With a capital, where it begins with a word: the name of a file stays as it is."""
    first = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if first.isalpha() else text


def section_of(path: str) -> str:
    """Which entry of the menu an address belongs to: /g/demo/why to "ask", /g/demo itself and its entities to ""."""
    parts = path.strip("/").split("/")
    name = parts[0] if parts[0] != "g" else "".join(parts[2:3])
    return SECTIONS.get(name, "")


def renderer(service: Service, has_token: bool) -> Render:
    """`render(request, template, status, **values)`: the page, with what all pages share."""
    env = environment()

    def render(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        section = section_of(request.url.path)
        common = {
            "graph": None,
            "here": lambda name: Markup(' aria-current="page"') if name == section else "",
            "graphs": list(service.graphs),
            "theme": request.cookies.get("theme", "auto"),
            "has_token": has_token,
        }
        return HTMLResponse(env.get_template(template).render(**{**common, **values}), status)

    return render


def inline(picture: str) -> Markup:
    """A picture for a page. With links in it, it is a group of things for those who don't see it, not one image."""
    found = WIDTH.search(picture)
    if found and float(found[1]) > FITTING:
        picture = picture.replace('class="g-picture"', 'class="g-picture large"', 1)
    return Markup(picture.replace('role="img"', 'role="group"', 1))
