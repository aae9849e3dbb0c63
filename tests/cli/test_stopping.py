"""Ctrl-C while libraries load: one line, even where a library swallows the interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

STUBBORN = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000): pass
except BaseException:
    pass
"""
PROGRAM = """
import os, signal, sys
from gamma_kg.__main__ import catch_stops
catch_stops()
try:
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000): pass
except KeyboardInterrupt:
    print("caught", flush=True)
import stubborn
print("went on")
"""


def run(tmp_path: Path, program: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}
    )


def test_a_library_that_swallows_ctrl_c_while_it_loads_does_not_go_on(tmp_path: Path) -> None:
    done = run(tmp_path, PROGRAM)
    assert (done.returncode, done.stderr, done.stdout) == (130, "gamma: stopped\n", "caught\n")


def test_a_job_in_the_background_goes_on_ignoring_it(tmp_path: Path) -> None:
    program = PROGRAM.replace("catch_stops()\ntry", "signal.signal(signal.SIGINT, signal.SIG_IGN); catch_stops()\ntry")
    done = run(tmp_path, program)
    assert (done.returncode, done.stdout) == (0, "went on\n")


def test_ctrl_c_while_the_interpreter_ends_is_no_traceback(tmp_path: Path) -> None:
    """Libraries tidy up when the command is done, torch for a long while."""
    program = (
        "import atexit, os, signal, sys\nfrom gamma_kg.__main__ import main\n"
        "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\nsys.argv = ['gamma', '--version']\nmain()"
    )
    done = run(tmp_path, program)
    assert done.returncode == -signal.SIGINT and done.stdout and not done.stderr
