"""Commands under a guard: so many seconds of the processor and so much memory, which the system holds them to."""

from __future__ import annotations

import resource
import subprocess

from tests.cli.running import ENVIRONMENT, process

SECONDS = 20
"""Of the processor's time. What these tests run takes a second or two; before it was bounded it took a minute and more."""

MEMORY = 3 * 2**30
"""Of address space, of which NumPy's libraries alone reserve some."""


def bounded(*args: object, input: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run `tidu` under the guard. Fails where that ends it."""

    def guard() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # each thread would reserve memory of its own
    done = process(*args, input=input, preexec_fn=guard, env={**ENVIRONMENT, **single, **environment})
    assert done.returncode in (0, 1, 2), f"ended by signal {-done.returncode}: {args}"
    assert b"out of memory" not in done.stderr and b"Unable to allocate" not in done.stderr, done.stderr
    return done


def succeeds(*args: object, input: bytes = b"") -> bytes:
    """What a command prints, which must succeed."""
    done = bounded(*args, input=input)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(*args: object, input: bytes = b"", **environment: str) -> str:
    """The one line in which a command that must fail says why."""
    done = bounded(*args, input=input, **environment)
    assert done.returncode == 1, (done.stdout[:500], done.stderr)
    (line,) = done.stderr.decode().splitlines()
    return line
