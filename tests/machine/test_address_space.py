"""A limit of address space is known, and lived with."""

from __future__ import annotations

import subprocess
import sys

from gamma_kg.machine.address_space import limit, room
from gamma_kg.machine.memory import free_memory

# A process of its own: a limit can't be taken back.
LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (3 << 30,) * 2)
from gamma_kg.machine.address_space import limit, room, spare
from gamma_kg.machine.memory import free_memory
assert limit() == 3 << 30 and 0 < room() < 3 << 30, (limit(), room())
assert free_memory() <= room()
spare()
before = room()
import threading
# Each of them takes memory while all are alive, as the threads of libraries do.
together = threading.Barrier(9)
def take():
    kept = [bytes(600) for _ in range(1000)]
    together.wait()
    together.wait()
threads = [threading.Thread(target=take) for _ in range(8)]
for thread in threads: thread.start()
together.wait()
taken = before - room()
together.wait()
print(taken >> 20)
"""


LIMITED_DATA = """
import resource
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30,) * 2)
from gamma_kg.machine.address_space import room
before = room()
kept = bytes(1 << 28)
print(before >> 20, (before - room()) >> 20)
"""


def test_a_limit_of_data_counts_too() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED_DATA], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    before, taken = map(int, done.stdout.split())
    assert 0 < before < 1024 and 256 <= taken < 260


def test_without_a_limit_nothing_is_counted() -> None:
    assert limit() is None and room() is None and free_memory() > 0


def test_under_a_limit_threads_share_what_malloc_reserves() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 200, "eight threads reserve 64 MB each, but for a shared arena"
