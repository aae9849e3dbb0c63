"""What goes over the wire, in and out; the OpenAPI document is made from this."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from gamma_kg.rules.reasons import MIN_CASES

MAX_NAME = 2000
MAX_QUESTION = 10_000


def _readable(name: str) -> str:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode") from None
    return name


Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME), AfterValidator(_readable)]
Probability = Annotated[float, Field(ge=0, le=1)]


class Record(BaseModel):
    """Unknown fields are refused: a misspelt option must not be silently without effect."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def of(cls, thing: object, **more: Any) -> Self:
        """The record of a thing that has its fields as attributes, and of `more`."""
        return cls(**{name: getattr(thing, name) for name in cls.model_fields if name not in more}, **more)


class Problem(BaseModel):
    type: str
    title: str
    status: int
    detail: str


class GraphInfo(Record):
    id: str
    title: str
    entities: int
    relations: int
    facts: int
    uploaded: bool
    calibration: str | None = Field(description="What fitting probabilities found; null if they are plain shares.")
    types: list[str] = Field(description="Types that answers can be narrowed to: named types, and roles.")


class GraphList(Record):
    graphs: list[GraphInfo]
    model: str
    version: str


class NamedEntity(Record):
    name: str
    degree: int = Field(description="Facts with this entity at either end.")
    types: list[str]


class NamedRelation(Record):
    name: str
    facts: int


class Fact(Record):
    head: Name
    relation: Name
    tail: Name


class OwnFact(Fact):
    is_head: bool = Field(description="Whether the entity asked about is the head.")


class Entity(NamedEntity):
    identifier: str
    facts: list[OwnFact]
    offset: int


class Group(Record):
    relation: str
    is_head: bool
    count: int
    others: tuple[str, ...]


class Neighbourhood(Record):
    name: str
    groups: list[Group]


class Question(Record):
    """Two of the three are given; the third is asked for."""

    head: Name | None = None
    relation: Name | None = None
    tail: Name | None = None


class PredictRequest(Record):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"queries": [{"head": "Kenya", "relation": "member of"}], "top_k": 3}]},
    )

    queries: list[Question] = Field(min_length=1, max_length=10_000)
    top_k: int = Field(10, ge=1, le=1_000_000)
    known: Literal["exclude", "include", "only"] = "exclude"
    answer_type: Name | None = Field(None, description="Only answers of this type or role, see the graph's `types`.")
    min_probability: Probability = 0.0


class Answer(Fact):
    name: str
    probability: float
    score: float
    known: bool
    branch_weights: dict[str, float] = Field(description="How much each branch counted.")
    why_not: str | None = Field(description="What the graph's own patterns say against it.")
    local: int | None = Field(description="Facts in the neighbourhood it was computed on; null: the whole graph.")


class Answers(Record):
    query: Question
    answers: list[Answer]


class PredictResponse(Record):
    results: list[Answers]


class Condition(Fact):
    join: Literal["and", "or", "not"] = Field("and", description="or: an alternative to the condition above it.")


class Conditions(Record):
    """Line by line, as on the page; a name with a ? in front is a variable."""

    find: Name = "?x"
    conditions: list[Condition] = Field(min_length=1, max_length=100)


class AskRequest(Record):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"question": "SELECT ?x { <Kenya> <borders>/<official language> ?x }", "top_k": 3}]
        },
    )

    question: (
        Annotated[str, Field(min_length=1, max_length=MAX_QUESTION), AfterValidator(_readable)] | list[Any] | Conditions
    ) = Field(
        description="SPARQL (SELECT ?x WHERE { … }), a nested list of names as in the BetaE files, or conditions."
    )
    top_k: int = Field(10, ge=1)
    only_new: bool = Field(False, description="Leave out answers that follow from the graph as it is.")
    logic: Literal["product", "godel", "lukasiewicz"] = Field("product", description="How degrees are joined.")
    why: bool = Field(False, description="Explain each predicted step; for few answers, as it takes a while.")


class ExplainRequest(Fact):
    without: list[Fact] = Field(default=[], max_length=100, description="As if these facts were gone.")
    paths: int = Field(5, ge=1, le=20)
    facts: int = Field(5, ge=0, le=20)


class PathStep(Fact):
    forward: bool


class ExplainedPath(Record):
    steps: list[PathStep]
    importance: float
    drop: float


class KeyFact(Fact):
    drop: float = Field(description="How far the score falls without this fact.")
    share: float = Field(description="Of the answer without it, among its rivals.")
    rank: int


class KeyPair(Record):
    first: tuple[str, str, str]
    second: tuple[str, str, str]
    drop: float
    share: float
    rank: int


class Explained(Fact):
    model_config = ConfigDict(extra="allow")

    score: float
    probability: float = Field(description="As in predictions: fitted to the graph where that was done.")
    share: float = Field(description="Of the scores of all candidates; what removals are measured by.")
    rank: int
    known: bool
    branch_weights: dict[str, float]
    paths: list[ExplainedPath]
    facts: list[KeyFact]
    pairs: list[KeyPair] = Field(description="Two facts that decide together, where no single one does.")
    cause: str = Field(description="What the answer rests on: one fact, two together, many, or none of those tested.")


class AskedStep(Fact):
    known: bool = Field(description="The graph holds this fact; else it is predicted.")
    probability: float = Field(description="Of this fact, from both its ends; fitted to the graph where that was done.")
    why: Explained | None = Field(description="As /explain says it; only for predicted steps, and only if asked for.")


class AskedAnswer(Record):
    name: str
    probability: float = Field(description="That all its steps hold, and nothing that is denied does.")
    degree: float = Field(description="How far it belongs to the fuzzy set: what answers are chosen by.")
    follows: bool = Field(description="From the facts of the graph, without prediction.")
    bindings: dict[str, str] = Field(description="The best entity for every inner variable.")
    steps: list[AskedStep]
    denied: list[AskedStep] = Field(description="What speaks most for something that is denied: against the answer.")


class AskResponse(Record):
    answers: list[AskedAnswer]


class JobRequest(Record):
    kind: Literal["complete", "calibrate"]
    entity: Name | None = Field(None, description="Only facts about this entity (complete).")
    relation: Name | None = Field(None, description="Only facts of this relation (complete).")
    top: int = Field(100, ge=1, le=1_000_000)
    min_probability: Probability = 0.0
    min_cases: int = Field(MIN_CASES, ge=0, description="Cases that a reason for each fact must have (complete).")
    seconds: Annotated[float, Field(gt=0, le=86_400)] | None = Field(None, description="Time to use at most.")


class JobInfo(Record):
    id: str
    kind: Literal["complete", "calibrate"]
    graph: str
    about: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    cancelling: bool = Field(description="Told to end, and about to: what is being computed is computed first.")
    done: int = Field(description="Queries asked so far.")
    total: int = Field(description="Queries in all; 0 while it is found out which these are.")
    error: str | None
    message: str | None = Field(description="What came out, in a sentence.")


class Proposal(Fact):
    probability: float
    score: float
    verdict: Literal["accepted", "rejected"] | None


class JobResult(Record):
    job: JobInfo
    facts: list[Proposal]


class Decision(Fact):
    verdict: Literal["accepted", "rejected"] | None = Field(description="null takes an earlier verdict back.")
    probability: Probability | None = None


class Decisions(Record):
    accepted: list[Fact]
    rejected: list[Fact]
