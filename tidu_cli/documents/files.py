"""Files and pipes: bytes in, and bytes out in one piece or not at all."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tidu_cli.errors import DocumentError

STDOUT = (None, "-", "/dev/stdout")
"""The paths that mean standard output. /dev/stdout by name would replace the file that the shell redirected it to."""


def read_bytes(path: str) -> bytes:
    """All bytes of a file, or of stdin for "-". Raises DocumentError if there are none or they cannot be read."""
    where = "stdin" if path == "-" else path
    with _one_line_errors(where, "read"):
        if path == "-":
            if sys.stdin is None:
                raise DocumentError("stdin: is closed")
            data = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                data = file.read()
    if not data:
        raise DocumentError(f"{where}: empty; expected a document in JSON or msgpack")
    return data


def write_bytes(data: bytes, path: str | None) -> None:
    """Write to a file, or to stdout for None and "-". Raises DocumentError; BrokenPipeError if the reader has gone.

    A file is replaced at once when all is written, under its old permissions, and left as it was if anything fails.
    A link stays a link: the file that it points to is replaced. Devices and pipes are written to directly.
    """
    with _one_line_errors("stdout" if path in STDOUT else str(path), "write"):
        if path in STDOUT:
            if sys.stdout is None:
                raise DocumentError("stdout: is closed")
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        elif _is_special(path):
            with open(path, "wb") as file:
                file.write(data)
        else:
            _replace(os.path.realpath(path), data)


def _is_special(path: str) -> bool:
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def _replace(target: str, data: bytes) -> None:
    permissions = None
    if os.path.exists(target):
        permissions = stat.S_IMODE(os.stat(target).st_mode)
        if not os.access(target, os.W_OK):  # which os.replace would not ask
            raise PermissionError(13, "permission denied")
    # In the same directory, as only a rename within one file system is atomic. A new file's mode follows the umask.
    temporary = os.path.join(os.path.dirname(target), f".tidu-{os.urandom(8).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(descriptor, "wb") as file:
            if permissions is not None:
                os.chmod(temporary, permissions)
            file.write(data)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


@contextmanager
def _one_line_errors(where: str, action: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise  # not the user's mistake: `tidu … | head` ends like this
    except FileNotFoundError:
        what = "no such file" if action == "read" else "no such directory"
        raise DocumentError(f"{where}: {what}") from None
    except IsADirectoryError:
        raise DocumentError(f"{where}: is a directory") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DocumentError(f"{where}: cannot {action}: {reason}") from None
    except ValueError:  # a NUL in the path
        raise DocumentError(f"{where!r}: not a path") from None
