"""Programs that tests call beside Python, make and what every system has: without one, tests that need it are skipped, and say so.

The line that installs it comes with each. `python tests/programs.py` prints the packages of those that are missing. With
TIDU_TEST_ALL=1 none may be missing: then a test that is skipped, for whatever reason, has failed (`tests/conftest.py`).
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # which a bare machine lacks, and the packages are printed for one
    import pytest

PACKAGES = {
    "bash": "bash",
    "cc": "gcc libc6-dev",
    "chromium": "chromium fonts-dejavu-core",
    "dot": "graphviz",
    "fish": "fish",
    "groff": "groff-base",
    "mandoc": "mandoc",
    "node": "nodejs",
    "zsh": "zsh",
}
"""The packages of Debian that bring each program."""

_NAMES = {"chromium": ("chromium", "chromium-browser", "google-chrome")}

_CALLS = {
    "dot": r"\btidu( -\S+)* (dot\b.*(--format[= ]|-o ?\S+\.)(svg|png|pdf)|view)\b",
    "node": r"\bnode\b",
    "cc": r"\bcc\b",
}
"""What in a command line calls a program, itself or by tidu."""


def path_of(program: str) -> str | None:
    """Where a program is; None where it is missing."""
    return next(filter(None, map(shutil.which, _NAMES.get(program, (program,)))), None)


def called_by(command: str) -> list[str]:
    """The programs that a command line calls."""
    return [program for program, pattern in _CALLS.items() if re.search(pattern, command)]


def missing(*programs: str) -> str:
    """What to say of the programs that are missing: which they are, and what installs them. Empty if none is."""
    lacking = [program for program in dict.fromkeys(programs) if path_of(program) is None]
    return f"needs {', '.join(lacking)}: apt-get install {' '.join(PACKAGES[program] for program in lacking)}" if lacking else ""


def needs(*programs: str) -> pytest.MarkDecorator:
    """Marks tests that call these programs: they are skipped where one is missing."""
    import pytest

    return pytest.mark.skipif(bool(missing(*programs)), reason=missing(*programs) or "nothing")


def require(*programs: str) -> None:
    """Skip the test that is running, if one of these programs is missing."""
    import pytest

    if lacking := missing(*programs):
        pytest.skip(lacking)


if __name__ == "__main__":
    print(" ".join(packages for program, packages in PACKAGES.items() if path_of(program) is None))
