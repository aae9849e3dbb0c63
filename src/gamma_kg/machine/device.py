"""Which device computes: what a user writes ("auto", "cpu", "cuda", "cuda:1"), and what torch finds here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gamma_kg.errors import ConfigError

if TYPE_CHECKING:
    import torch


def choose_device(name: str | torch.device = "cpu") -> torch.device:
    """The device of that name; "auto" is a GPU where there is one. A device that is not here is a `ConfigError`.

    A GPU comes with its number: that of this process among several, else the first.
    """
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"no device {name!r}: wanted auto, cpu, cuda or cuda:0") from None
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device {str(name)!r} is not one that gamma computes on: wanted auto, cpu, cuda or cuda:0")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"device {str(name)!r} was asked for, but torch finds {torch.cuda.device_count()} GPUs here: "
            "leave it out or say cpu, or install a torch built for your GPU"
        )
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device
