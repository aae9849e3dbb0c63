"""`gamma` and `python -m gamma_kg`: from the first import on, Ctrl-C ends with one line instead of a traceback."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

STOPPED = 130  # what a shell says of a command that Ctrl-C ended


def main() -> None:
    try:
        catch_stops()
        from gamma_kg.cli import main as run
    except KeyboardInterrupt:
        print("gamma: stopped", file=sys.stderr)
        sys.exit(STOPPED)
    try:
        run()
    finally:
        let_stops_end()


def catch_stops() -> None:
    """Ctrl-C in the middle of an import ends the process there and then.

    Libraries catch what they do not expect while they load, and are left half-loaded: numpy then calls itself until
    the stack is full. Nothing is lost, since files appear whole or not at all. Elsewhere it is a `KeyboardInterrupt`.
    """
    import signal

    # Where the shell has SIGINT ignored (a job in the background) it stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


def let_stops_end() -> None:
    """The command has said its last word: from here on Ctrl-C ends the process, and what libraries tidy up with it."""
    import signal

    if signal.getsignal(signal.SIGINT) is _stop:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _stop(number: int, frame: "FrameType | None") -> None:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            import os

            os.write(2, b"gamma: stopped\n")
            os._exit(STOPPED)
        frame = frame.f_back
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
