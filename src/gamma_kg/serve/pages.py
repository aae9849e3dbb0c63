"""The pages for people: made on the server from templates, so that every one has an address and works without script.

All names go through the templates' escaping, and what can't be seen in them is made visible (`io/shown.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Annotated, Any
from urllib.parse import urlencode, urlsplit

from fastapi import FastAPI, File, Form, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from gamma_kg.drawing.network import Arrow
from gamma_kg.errors import DataError
from gamma_kg.explain.neighbourhood_picture import draw_neighbourhood
from gamma_kg.explain.picture import draw_svg
from gamma_kg.io.shown import shown
from gamma_kg.serve import reference, schemas, views
from gamma_kg.serve.examples import example_questions
from gamma_kg.serve.facts import groups_of
from gamma_kg.serve.hosted import HostedGraph
from gamma_kg.serve.security import COOKIE, Token
from gamma_kg.serve.service import Known, Service, Wanted, check_fact
from gamma_kg.serve.uploads import ENDINGS, take_in

FACTS_A_PAGE = 50
Triple = tuple[str, str, str]
# An empty field of a form means that nothing was given.
Given = Annotated[str, Query(max_length=schemas.MAX_NAME)]


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
    env.filters["percent"] = lambda p: f"{p:.1%}" if p >= 0.001 or p == 0 else "< 0.1%"
    env.filters["count"] = lambda number: f"{number:,}"
    env.filters["exact"] = lambda text: Markup(escape(text))  # for values that are sent back
    return env


def install(app: FastAPI, service: Service, token: Token) -> None:
    """Adds all pages to the app."""
    env = environment()
    static = files("gamma_kg.serve") / "static"
    app.mount("/static", StaticFiles(directory=str(static)), name="static")

    def render(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        common = {"graph": None, "graphs": list(service.graphs), "theme": request.cookies.get("theme", "auto")}
        page = env.get_template(template).render(**{**common, "has_token": token.is_wanted, **values})
        return HTMLResponse(page, status)

    def problem_page(request: Request, status: int, title: str, detail: str) -> HTMLResponse:
        return render(request, "problem.html", status, heading=title, detail=detail)

    app.state.render_problem = problem_page
    for add in (_entrance, _looking, _asking, _finding):
        add(app, service, token, render)


Render = Callable[..., HTMLResponse]


def _entrance(app: FastAPI, service: Service, token: Token, render: Render) -> None:
    """The way in: which graph, sign-in, upload, the description of the interface."""

    @app.get("/", include_in_schema=False)
    async def home() -> Response:
        held = list(service.graphs)
        return RedirectResponse(f"/g/{held[0].id}" if len(held) == 1 else "/graphs", 303)

    @app.get("/graphs", include_in_schema=False)
    async def graphs(request: Request) -> HTMLResponse:
        infos = [views.graph_info(graph) for graph in service.graphs]
        return render(request, "graphs.html", infos=infos, endings=ENDINGS, limits=service.limits)

    @app.post("/graphs", include_in_schema=False)
    async def upload(file: Annotated[UploadFile, File()]) -> Response:
        graph = await take_in(service, file)
        return RedirectResponse(f"/g/{graph.id}", 303)

    @app.post("/g/{graph}/remove", include_in_schema=False)
    async def remove(graph: str) -> Response:
        service.graphs.remove(graph)
        return RedirectResponse("/graphs", 303)

    @app.get("/sign-in", include_in_schema=False)
    async def sign_in(request: Request) -> HTMLResponse:
        return render(request, "sign_in.html", refused=False, graphs=[])

    @app.post("/sign-in", include_in_schema=False)
    async def check(request: Request, secret: Annotated[str, Form(max_length=1000)] = "") -> Response:
        if not token.accepts(secret):
            return render(request, "sign_in.html", 401, refused=True, graphs=[])
        answer = RedirectResponse("/", 303)
        is_secure = request.url.scheme == "https"
        answer.set_cookie(COOKIE, token.cookie(), httponly=True, samesite="strict", secure=is_secure)
        return answer

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        return render(request, "docs.html", groups=reference.operations(app.openapi()), title=app.title)


def _looking(app: FastAPI, service: Service, token: Token, render: Render) -> None:
    """What a graph holds."""

    @app.get("/g/{graph}", include_in_schema=False)
    async def overview(request: Request, graph: str) -> HTMLResponse:
        hosted = service.graphs[graph]
        return render(
            request,
            "overview.html",
            graph=hosted,
            info=views.graph_info(hosted),
            relations=views.found_relations(hosted, "", 12),
            entities=views.found_entities(hosted, "", 12),
            examples=example_questions(hosted),
            model=service.model.description,
        )

    @app.get("/g/{graph}/search", include_in_schema=False)
    async def search(request: Request, graph: str, q: Given = "") -> Response:
        hosted = service.graphs[graph]
        if q in hosted.kg.entities:
            return RedirectResponse(address(f"/g/{graph}/entity", name=q), 303)
        found = views.found_entities(hosted, q, 30)
        relations = views.found_relations(hosted, q, 10) if q.strip() else []
        return render(request, "search.html", graph=hosted, q=q, found=found, relations=relations)

    @app.get("/g/{graph}/entity", include_in_schema=False)
    async def entity(
        request: Request, graph: str, name: Given, offset: Annotated[int, Query(ge=0, le=10**9)] = 0
    ) -> HTMLResponse:
        hosted = service.graphs[graph]
        card = views.entity(hosted, name, offset, FACTS_A_PAGE)
        groups = groups_of(hosted.kg, hosted.kg.entity_id(name), views.NEIGHBOURS_SHOWN)
        picture = draw_neighbourhood(card.name, groups, link=lambda other: address(f"/g/{graph}/entity", name=other))
        return render(
            request,
            "entity.html",
            graph=hosted,
            card=card,
            picture=_inline(picture),
            page_size=FACTS_A_PAGE,
            asks=[(g.relation, g.is_head) for g in groups],
        )

    @app.get("/g/{graph}/relation", include_in_schema=False)
    async def relation(request: Request, graph: str, name: Given) -> HTMLResponse:
        hosted = service.graphs[graph]
        index = hosted.kg.relation_id(name)
        return render(
            request,
            "relation.html",
            graph=hosted,
            name=hosted.kg.relations[index],
            identifier=hosted.kg.relations.identifier(index),
            count=int(hosted.facts_by_relation[index]),
            facts=hosted.facts_with(index, FACTS_A_PAGE),
        )


def _asking(app: FastAPI, service: Service, token: Token, render: Render) -> None:
    """Questions, and why."""

    @app.get("/g/{graph}/ask", include_in_schema=False)
    async def ask(
        request: Request,
        graph: str,
        head: Given = "",
        relation: Given = "",
        tail: Given = "",
        known: Known = "exclude",
        type: Given = "",
        least: Annotated[float, Query(ge=0, le=100)] = 0,
        top: Annotated[int, Query(ge=1, le=200)] = 10,
    ) -> HTMLResponse:
        hosted = service.graphs[graph]
        query = (head.strip() or None, relation.strip() or None, tail.strip() or None)
        answers, complaint, status = None, "", 200
        if query.count(None) == 1:
            wanted = Wanted(top, known, type.strip() or None, least / 100)
            try:
                (answers,) = await service.predict(hosted, [query], wanted)
            except DataError as error:
                complaint, status = str(error), 404
        elif query.count(None) != 3:
            complaint = "Fill in two of the three fields; the third is predicted."
        verdicts = [hosted.review.verdict((a.head, a.relation, a.tail)) for a in answers or ()]
        return render(
            request,
            "ask.html",
            status,
            graph=hosted,
            query=query,
            asked=("head", "relation", "tail")[query.index(None)] if query.count(None) == 1 else None,
            answers=None if answers is None else list(zip(answers, verdicts, strict=True)),
            complaint=complaint,
            known=known,
            type=type,
            least=least,
            top=top,
            examples=example_questions(hosted) if answers is None else [],
        )

    @app.get("/g/{graph}/why", include_in_schema=False)
    async def why(
        request: Request,
        graph: str,
        head: Given,
        relation: Given,
        tail: Given,
        without_head: Annotated[list[Given], Query(max_length=20)] = [],  # noqa: B006
        without_relation: Annotated[list[Given], Query(max_length=20)] = [],  # noqa: B006
        without_tail: Annotated[list[Given], Query(max_length=20)] = [],  # noqa: B006
    ) -> HTMLResponse:
        hosted = service.graphs[graph]
        fact = (head, relation, tail)
        gone = list(zip(without_head, without_relation, without_tail, strict=False))
        found = await service.explain(hosted, fact, without=gone)
        before = await service.explain(hosted, fact, paths=1, facts=0) if gone else None

        def here(without: list[Triple]) -> str:
            heads, relations, tails = zip(*without, strict=True) if without else ((), (), ())
            return address(
                f"/g/{graph}/why", head=head, relation=relation, tail=tail,
                without_head=heads, without_relation=relations, without_tail=tails,
            )  # fmt: skip

        def less(arrow: Arrow) -> str:
            return here([*gone, (arrow.head, arrow.relation, arrow.tail)])

        return render(
            request,
            "why.html",
            graph=hosted,
            why=found,
            before=before,
            gone=[(f, here([g for g in gone if g != f])) for f in gone],
            all_back=here([]),
            picture=_inline(draw_svg(found, link=less)),
            without=lambda f: here([*gone, (f.head, f.relation, f.tail)]),
            verdict=hosted.review.verdict(fact),
        )


def _finding(app: FastAPI, service: Service, token: Token, render: Render) -> None:
    """Missing facts, jobs, and verdicts."""

    @app.get("/g/{graph}/missing", include_in_schema=False)
    async def missing(request: Request, graph: str, entity: Given = "", relation: Given = "") -> HTMLResponse:
        hosted = service.graphs[graph]
        jobs = [views.job_info(job) for job in service.jobs if job.graph == hosted.id]
        return render(
            request,
            "missing.html",
            graph=hosted,
            entity=entity,
            relation=relation,
            jobs=list(reversed(jobs)),
            accepted=hosted.review.facts("accepted"),
            rejected=hosted.review.facts("rejected"),
            calibration=hosted.calibration,
        )

    @app.post("/g/{graph}/missing", include_in_schema=False)
    async def start(
        graph: str,
        kind: Annotated[str, Form(max_length=20)] = "complete",
        entity: Annotated[str, Form(max_length=schemas.MAX_NAME)] = "",
        relation: Annotated[str, Form(max_length=schemas.MAX_NAME)] = "",
        top: Annotated[int, Form(ge=1, le=1000)] = 100,
    ) -> Response:
        hosted = service.graphs[graph]
        if kind == "calibrate":
            job = service.start_calibrate(hosted)
        else:
            top = min(top, service.limits.results)
            job = service.start_complete(
                hosted, entity=entity.strip() or None, relation=relation.strip() or None, top=top
            )
        return RedirectResponse(f"/g/{graph}/jobs/{job.id}", 303)

    @app.get("/g/{graph}/jobs/{job}", include_in_schema=False)
    async def job_page(request: Request, graph: str, job: str) -> HTMLResponse:
        hosted, found = service.graphs[graph], service.jobs[job]
        facts = views.proposals(hosted, found) if found.state == "done" else []
        return render(request, "job.html", graph=hosted, job=views.job_info(found), facts=facts)

    @app.post("/g/{graph}/jobs/{job}/cancel", include_in_schema=False)
    async def cancel(graph: str, job: str) -> Response:
        service.jobs.cancel(service.jobs[job])
        return RedirectResponse(f"/g/{graph}/jobs/{job}", 303)

    @app.post("/g/{graph}/decide", include_in_schema=False)
    async def decide(
        request: Request,
        graph: str,
        head: Annotated[str, Form(max_length=schemas.MAX_NAME)],
        relation: Annotated[str, Form(max_length=schemas.MAX_NAME)],
        tail: Annotated[str, Form(max_length=schemas.MAX_NAME)],
        verdict: Annotated[str, Form(max_length=20)] = "",
        probability: Annotated[float | None, Form(ge=0, le=1)] = None,
    ) -> Response:
        hosted = service.graphs[graph]
        check_fact(hosted.kg, (head, relation, tail))
        if verdict not in ("accepted", "rejected", ""):
            raise DataError(f"a verdict is accepted or rejected, got {verdict!r}")
        hosted.review.decide((head, relation, tail), verdict or None, probability)  # type: ignore[arg-type]
        if request.headers.get("accept") == "application/json":  # the page's own script
            return Response(status_code=204)
        return RedirectResponse(_back(request, hosted), 303)


def _inline(picture: str) -> Markup:
    """A picture for a page. With links in it, it is a group of things for those who don't see it, not one image."""
    return Markup(picture.replace('role="img"', 'role="group"', 1))


def _back(request: Request, graph: HostedGraph) -> str:
    """Where a form came from, if that is a page of ours."""
    came = urlsplit(request.headers.get("referer", ""))
    is_ours = came.netloc == request.headers.get("host") and came.path.startswith("/g/")
    return came._replace(scheme="", netloc="").geturl() if is_ours else f"/g/{graph.id}/missing"
