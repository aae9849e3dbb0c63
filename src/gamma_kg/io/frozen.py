"""FrozenConfig: a record of checked options, the base of every config."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from gamma_kg.errors import ConfigError, did_you_mean


class FrozenConfig(BaseModel):
    """A record of options that can't be changed; an unknown key or a bad value is a `ConfigError`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def parse(cls, options: dict[str, Any], where: str = "") -> Self:
        """Build from a plain dict; all complaints in one text, unknown keys with the nearest known one."""
        try:
            return cls.model_validate(options)
        except ValidationError as error:
            complaints = "; ".join(cls._complaint(entry) for entry in error.errors())
            raise ConfigError(f"{where + ': ' if where else ''}{complaints}") from None

    def with_options(self, **options: Any) -> Self:
        """A copy with some options changed, checked like a new one."""
        return self.parse({**self.model_dump(), **options})

    @classmethod
    def _complaint(cls, entry: Any) -> str:
        key = ".".join(str(part) for part in entry["loc"])
        if entry["type"] == "extra_forbidden":
            return f"{cls.__name__} has no option {key!r}{did_you_mean(key, cls.model_fields)}"
        message = entry["msg"].removeprefix("Value error, ")
        return f"{cls.__name__}.{key}: {message} (got {entry['input']!r})" if key else message
