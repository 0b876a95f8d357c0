"""A file replaced in one piece: whatever ends the process, and whoever else writes, there is the old file or a whole new one.

What is written has no name before it is complete, where the system has files without names (O_TMPFILE), so that nothing is left of
a process that is killed. Elsewhere, and for the moment between having a name and having the right one, it is a file `.tidu-HEX.tmp`
beside the target. Its writer holds a lock on it; one that nobody holds is removed by whoever writes into the folder next.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import BinaryIO

# What is to be undone before a signal ends the process: a file beside the one that is replaced, a bar on the terminal.


_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""An interrupt (Ctrl-C), a request to end, and a terminal that closes."""


class _Handler:
    """Undoes, and then lets the signal do what it did before."""

    def __init__(self, undo: Callable[[], None], before: _Handler | signal.Handlers) -> None:
        self.undo = undo
        self.before = before

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.undo()
        if isinstance(self.before, _Handler):
            self.before(number, frame)
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


@contextmanager
def undone_by_signals(undo: Callable[[], None]) -> Iterator[None]:
    """Within the block, `undo` is called before a signal ends the process; the process ends by the signal all the same.

    Concerns signals that would end it at once. Where a program has handlers of its own, as Python's that raises KeyboardInterrupt,
    they stay; so does everything in threads other than the main one, which get no signals.
    """
    replaced: list[tuple[int, _Handler | signal.Handlers]] = []
    if threading.current_thread() is threading.main_thread():
        for number in _ENDING:
            before = signal.getsignal(number)
            if isinstance(before, _Handler) or before is signal.SIG_DFL:
                replaced.append((number, before))
                signal.signal(number, _Handler(undo, before))
    try:
        yield
    finally:
        for number, before in replaced:
            signal.signal(number, before)


try:
    import fcntl
except ImportError:  # there are no such locks: nothing is swept, and of two runs at once users have to take care
    fcntl = None  # type: ignore[assignment]

HAS_LOCKS = fcntl is not None

_TEMPORARY = re.compile(r"\.tidu-[0-9a-f]{16}\.tmp")

_JUST_MADE = 10.0  # seconds in which a file may be between being made, or complete, and being locked, or in its place


def replace(target: str, write: Callable[[BinaryIO], int]) -> int:
    """Put what `write` writes in the place of a file, or where there is none yet; give what it gives. `target` is no link.

    The new file has the old one's permissions, and its owner where the system allows it; a new file's follow the umask. It is on
    the disk before it has its name. Raises OSError, and what `write` raises: then the file is as it was, and nothing beside it.
    """
    old = os.stat(target) if os.path.exists(target) else None
    if old is not None:
        os.close(os.open(target, os.O_WRONLY))  # which may be refused, and os.replace would not ask
    folder = os.path.dirname(target)  # as only a rename within one file system is at once
    _sweep(folder)
    temporary = os.path.join(folder, f".tidu-{os.urandom(8).hex()}.tmp")
    with _removed_at_last(temporary):
        descriptor, is_named = _opened(folder, temporary)
        with open(descriptor, "wb") as file:
            lock(descriptor)
            length = write(file)
            file.flush()
            if old is not None:
                _take_after(descriptor, old)
            _store(descriptor)
            if not is_named:  # Without a descriptor Python would call link, which does not follow /proc's symbolic link.
                os.link(f"/proc/self/fd/{descriptor}", temporary, src_dir_fd=descriptor, follow_symlinks=True)
        os.replace(temporary, target)
    return length


@contextmanager
def _removed_at_last(path: str) -> Iterator[None]:
    """However the block or the process ends, short of being killed, there is no such file after it."""

    def remove() -> None:
        with suppress(OSError):
            os.unlink(path)

    with undone_by_signals(remove):
        try:
            yield
        except BaseException:
            remove()
            raise


def _opened(folder: str, temporary: str) -> tuple[int, bool]:
    """A descriptor of a new file, and whether it is `temporary` or has no name."""
    if hasattr(os, "O_TMPFILE"):
        with suppress(OSError):  # Which of many errors says that there are none here differs; another one comes again below.
            descriptor = os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o666)
            if os.path.exists(f"/proc/self/fd/{descriptor}"):
                return descriptor, False
            os.close(descriptor)
    return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), True


def _take_after(descriptor: int, old: os.stat_result) -> None:
    """Give a file the owner and the permissions of another."""
    if hasattr(os, "fchown"):
        with suppress(PermissionError):  # only root may give files away
            os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _store(descriptor: int) -> None:
    """Have what was written on the disk, where the file system knows what that is."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def lock(descriptor: int) -> bool | None:
    """Lock a file until it is closed. False if another process or thread has locked it, None where files have no locks."""
    if not HAS_LOCKS:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # this file system has none
        return None
    return True


def _sweep(folder: str) -> None:
    """Remove the files that writers who were killed have left."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_left(entry.path)


def _remove_if_left(path: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if time.time() - os.fstat(descriptor).st_mtime > _JUST_MADE and lock(descriptor):
            os.unlink(path)
    finally:
        os.close(descriptor)
