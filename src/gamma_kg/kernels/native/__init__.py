"""The native CPU engine behind `NativeBackend`: loading it, and checked calls into it."""

from gamma_kg.kernels.native.loading import describe, module, release_freed_memory, retain_freed_memory

__all__ = ["describe", "module", "release_freed_memory", "retain_freed_memory"]
