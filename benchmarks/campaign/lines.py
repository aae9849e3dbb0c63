"""What a line of the campaign reports: how often something was tried, and what went wrong."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Line:
    """One line of the table. `skipped` says why it could not be tried here."""

    name: str
    tried: int = 0
    wrong: list[str] = field(default_factory=list)
    skipped: str = ""
    seconds: float = 0.0
    processor_seconds: float = 0.0
    remark: str = ""

    def expect(self, holds: bool, complaint: str) -> None:
        """Count one try; the complaint is kept where it does not hold."""
        self.tried += 1
        if not holds:
            self.wrong.append(complaint)

    def __str__(self) -> str:
        if self.skipped:
            return f"{self.name:<48} not tried: {self.skipped}"
        told = f"{self.name:<48} {self.tried:>7,} tried {len(self.wrong):>5} wrong"
        return f"{told}  ({self.remark})" if self.remark else told


class NotHereError(Exception):
    """What a line needs is not to be had on this machine; it is passed over, with this as the reason."""


@dataclass(frozen=True)
class Effort:
    """How much of everything: the whole campaign, or a few of each for `make test`."""

    kills: int
    mutations: int
    races: int
    threads: int
    load_minutes: float = 30.0
    is_short: bool = False
    seed: int = 0


WHOLE = Effort(kills=20, mutations=2000, races=3, threads=16)
SHORT = Effort(kills=2, mutations=40, races=1, threads=4, load_minutes=0.1, is_short=True)
