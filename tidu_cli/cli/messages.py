"""What commands say on stderr besides errors, and how much of it: --quiet and --verbose.

Quiet leaves nothing but errors; verbose tells every step.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import click

from tidu_cli.errors import counted
from tidu_cli.streams import data_stream

# The progress bar on stderr, for work that takes more than a second, where stderr is a terminal.
#
# A thread draws it, so that watched loops need not look at the clock and a long step within one (a large matrix product) does not
# stop it. It is erased before anything else is printed, and leaves nothing behind.


AFTER = 1.0
"""Seconds of work before the bar is shown."""

_EVERY = 0.1  # seconds between drawings
_ERASE = "\r\x1b[K"
_WIDEST = 40  # of the bar itself, in columns
_SHOWN = f"{__name__}.shown"


class Progress:
    """A listener (see `tidu_cli.watching`) that draws a bar to `stream`, if there is one, and tells of stages that are done."""

    def __init__(self, stream: TextIO | None, tell: Callable[[str], None]) -> None:
        self.stream = stream
        self.tell = tell
        self.lock = threading.RLock()
        self.stage = ""
        self.total: int | None = None
        self.done = 0
        self.unit = "node"
        self.began = time.monotonic()
        self._is_drawn = False
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, stage: str, total: int | None, unit: str = "node") -> None:
        """A stage begins. The one before it is over."""
        self.stage, self.total, self.done, self.began, self.unit = stage, total, 0, time.monotonic(), unit
        if self.stream is not None and self._thread is None:
            self._thread = threading.Thread(target=self._draw_until_over, daemon=True)
            self._thread.start()

    def advance(self, n: int) -> None:
        """So many more items are done."""
        self.done += n
        if self.done == self.total:
            self.tell(f"{self.stage}: {counted(self.total, self.unit)}, {time.monotonic() - self.began:.3f} s")

    def close(self) -> None:
        """Erase the bar and end its thread."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        self.erase()

    def erase(self) -> None:
        """Erase the bar, if it is drawn. Whoever holds the lock keeps it erased."""
        with self.lock:
            if self._is_drawn and self.stream is not None:
                self._write(_ERASE)
                self._is_drawn = False

    def _draw_until_over(self) -> None:
        wait = AFTER
        while not self._over.wait(wait):
            wait = _EVERY
            with self.lock:
                assert self.stream is not None
                seconds, unit = time.monotonic() - self.began, "" if self.unit == "node" else self.unit
                line = drawn(self.stage, self.done, self.total, seconds, _columns(self.stream), unit)
                self._write(f"{_ERASE}{line}")
                self._is_drawn = True

    def _write(self, text: str) -> None:
        assert self.stream is not None
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # the terminal has gone, and there is nobody to tell
            self._over.set()


def drawn(stage: str, done: int, total: int | None, seconds: float, columns: int, unit: str = "") -> str:
    """The bar as a line of fewer than `columns` columns: stage, percent, bar and time left; of unknown totals the time so far.

    Where there is a `unit` the rate, in so many of it a second, is told, too.
    """
    if not total:
        return f"{stage}  {_clock(seconds)}"[: columns - 1]
    fraction = min(done / total, 1.0)
    before = f"{stage} {int(100 * fraction):3} %"
    after = f"{_clock(seconds * (1 - fraction) / fraction)} left" if done else ""
    if unit and done and seconds:
        rate = done / seconds
        after = f"{f'{rate:,.0f}' if rate >= 100 else f'{rate:.2g}'} {unit}s/s, {after}"
    width = min(columns - 1 - len(f"{before} [] {after}"), _WIDEST)
    if width < 4:
        return before[: columns - 1]
    filled = int(width * fraction)
    return f"{before} [{'#' * filled}{'.' * (width - filled)}] {after}".rstrip()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


@contextmanager
def shown(ctx: click.Context, progress: Progress) -> Iterator[None]:
    """Within the block, `progress` is told of all work of the command. The bar is gone after it."""
    from tidu_cli.formats.replacing import undone_by_signals
    from tidu_cli.watching import listening

    ctx.meta[_SHOWN] = progress
    try:
        with listening(progress), undone_by_signals(progress.erase):
            yield
    finally:
        del ctx.meta[_SHOWN]
        progress.close()


@contextmanager
def paused() -> Iterator[None]:
    """Within the block, no bar is in the way of what is printed."""
    ctx = click.get_current_context(silent=True)
    progress: Progress | None = None if ctx is None else ctx.meta.get(_SHOWN)
    if progress is None:
        yield
        return
    with progress.lock:
        progress.erase()
        yield


# Colours and bold print, for people at a terminal: never in what goes to a file or a pipe, unless they ask for it.


def coloured(stream: Any) -> bool:
    """Whether text that goes to this stream is styled.

    NO_COLOR forbids it; else FORCE_COLOR or CLICOLOR_FORCE (but for "0") ask for it; else a terminal has it, unless it is dumb.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def is_terminal(stream: Any) -> bool:
    """Whether a stream is a terminal. A closed one is none."""
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:
        return False


def heading(text: str) -> str:
    """Text that heads a part of what is printed to stdout."""
    return click.style(text, bold=True) if coloured(data_stream()) else text


def alarm(text: str) -> str:
    """The word on stderr that says that something is wrong."""
    return click.style(text, fg="red", bold=True) if coloured(sys.stderr) else text


class HelpFormatter(click.HelpFormatter):
    """Help with bold headings."""

    def write_heading(self, heading_: str) -> None:
        """Write a heading."""
        self.write(f"{'':>{self.current_indent}}{heading(f'{heading_}:')}\n")


class Context(click.Context):
    """A context whose help is styled where stdout is to be. Errors of usage, which go to stderr, have no headings."""

    formatter_class = HelpFormatter

    def get_help(self) -> str:
        """The help of the command. It is about to be printed to stdout."""
        self.color = coloured(data_stream())  # else click would take out again what FORCE_COLOR put in
        return super().get_help()


_LEVEL = f"{__name__}.level"


def level_options() -> list[click.Option]:
    """The options --quiet and --verbose, which every command has. Where both are given, the last one counts."""

    def remember(ctx: click.Context, param: click.Parameter, given: bool) -> None:
        if given:
            ctx.meta[_LEVEL] = param.name

    quiet = "Say nothing on standard error but errors."
    verbose = "Say on standard error what is read, done and written."
    return [
        click.Option(["--quiet"], is_flag=True, expose_value=False, callback=remember, help=quiet),
        click.Option(["-v", "--verbose"], is_flag=True, expose_value=False, callback=remember, help=verbose),
    ]


def is_quiet() -> bool:
    """Whether --quiet was given to the running command."""
    return _level() == "quiet"


def is_verbose() -> bool:
    """Whether --verbose was given to the running command."""
    return _level() == "verbose"


def _level() -> str | None:
    ctx = click.get_current_context(silent=True)
    return None if ctx is None else ctx.meta.get(_LEVEL)


def error(message: str) -> None:
    """Say why the command failed."""
    _say(f"{alarm('error:')} {_one_line(message)}")


def note(message: str) -> None:
    """Say something that the user should know, unless --quiet was given."""
    if not is_quiet():
        _say(f"note: {_one_line(message)}")


def detail(message: str) -> None:
    """Say what was done, if --verbose was given."""
    if is_verbose():
        _say(_one_line(message))


def _say(text: str) -> None:
    with paused():
        click.echo(f"{click.get_current_context().command_path}: {text}", err=True, color=coloured(sys.stderr))


def _one_line(message: str) -> str:
    from tidu_cli.formats.files import one_line

    return one_line(message)
