"""Writing a file and dying at each step of it: `python -m tests.faults.dying SIGNAL FOLDER [--named]` prints what is left.

Signals are as `tidu` has them. Before and after each step that the system sees (opening, writing, storing, naming, replacing) a
child gets the signal; the next child gets it one step later, until one gets through. With `--named` it is as on a system
that has no files without names, with `--new` there is no file yet.
"""

from __future__ import annotations

import builtins
import json
import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from tidu_cli.formats import replacing
from tidu_cli.formats.write import write_pieces

OLD = b"the old file\n"
NEW = [bytes([65 + k]) * 2**16 for k in range(4)]
NAME = "out.json"


class _Steps:
    """Counts steps, and sends the signal at one of them."""

    def __init__(self, number: int, at: int) -> None:
        self.number = number
        self.left = at

    def pass_one(self) -> None:
        if self.left == 0:
            os.kill(os.getpid(), self.number)
        self.left -= 1

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def stepping(*args: Any, **options: Any) -> Any:
            self.pass_one()
            result = function(*args, **options)
            self.pass_one()
            return result

        return stepping


def _watch(steps: _Steps) -> None:
    for name in ("open", "link", "replace", "fsync", "fchmod", "fchown"):
        setattr(os, name, steps.around(getattr(os, name)))

    def opened(*args: Any, **options: Any) -> Any:
        file = builtins.open(*args, **{**options, "buffering": 0})  # noqa: SIM115
        write = steps.around(file.write)

        class Watched:
            def __getattr__(self, name: str) -> Any:
                return write if name == "write" else getattr(file, name)

            def __enter__(self) -> Watched:
                return self

            def __exit__(self, *failure: object) -> None:
                file.close()

        return Watched()

    replacing.open = opened  # type: ignore[attr-defined]


def die(number: int, at: int, target: Path) -> int:
    """How a child ends that gets a signal at this step, as os.waitpid says."""
    child = os.fork()
    if child == 0:
        _watch(_Steps(number, at))
        write_pieces(NEW, str(target))
        os._exit(0)
    return os.waitpid(child, 0)[1]


def main(name: str, folder: str, *options: str) -> None:
    """Print a list of [status of the child, what the file holds, what is beside it], of each step."""
    import tidu_cli.__main__  # noqa: F401  # it says how signals end the process: not that of who imports this module

    if "--named" in options:
        del os.O_TMPFILE
    target = Path(folder, NAME)
    endings = []
    for at in count():
        if "--new" in options:
            target.unlink(missing_ok=True)
        else:
            target.write_bytes(OLD)
        status = die(getattr(signal, name), at, target)
        data = target.read_bytes() if target.exists() else None
        holds = {None: "nothing", OLD: "old", b"".join(NEW): "new"}.get(data, "a part")
        beside = sorted(set(os.listdir(folder)) - {NAME})
        endings.append([status, holds, beside])
        for left in beside:
            os.unlink(Path(folder, left))
        if status == 0:
            break
    print(json.dumps(endings))


if __name__ == "__main__":
    main(*sys.argv[1:])
