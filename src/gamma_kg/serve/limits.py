"""What one caller may use up: every limit of the server, with the defaults of `gamma serve`."""

from __future__ import annotations

from pydantic import Field

from gamma_kg.io.frozen import FrozenConfig


class Limits(FrozenConfig):
    """Beyond these a request is refused with a sentence that names the limit."""

    queue: int = Field(256, ge=1)
    """Questions that may wait for the model; the next one gets 429 with Retry-After."""
    seconds: float = Field(30.0, gt=0)
    """A request that is not answered by then gets 503."""
    body_bytes: int = Field(1 << 20, ge=1)
    upload_bytes: int = Field(64 << 20, ge=1)
    queries: int = Field(256, ge=1)
    """Questions in one call."""
    steps: int = Field(20, ge=1)
    """Relations to follow in one question with several steps."""
    explained: int = Field(10, ge=1)
    """Answers of such a question whose steps are explained in one call."""
    results: int = Field(1000, ge=1)
    """Answers of one question, names of one search, facts of one job."""
    jobs: int = Field(16, ge=1)
    """Jobs that may wait or run."""
    graphs: int = Field(16, ge=1)
    """Graphs held at once, those of the command line included."""
    facts: int = Field(2_000_000, ge=1)
    """Facts of an uploaded graph."""
    batch: int = Field(16, ge=1)
    """Questions answered together; 1 switches batching off."""
    batch_ms: float = Field(2.0, ge=0)
    """How long a question waits for company when others were there a moment ago."""
    grace_seconds: float = Field(30.0, ge=0)
    """How long a running job may go on after SIGTERM."""
