"""How much work may be: one budget, whose limits are set in one place.

What takes time and memory in proportion to what is read needs no limit. But a small file may stand for much: an array of zeros
compressed, operations made of operations made of operations, a product of large arrays. Whoever makes more of something than
stands in a file asks here how much that may be, before the work where its size can be told, and else as it goes on.

The limits are those of the innermost `limited`, which the command line sets from its options; else of the environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from itertools import chain, islice, repeat
from operator import length_hint
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from tidu_cli.errors import EvaluationError, LimitError, Remedy, StepsError
from tidu_cli.frozen import Frozen, field_names, replace

if TYPE_CHECKING:
    from pathlib import Path

H = TypeVar("H", bound=Hashable)
ENDLESS = 2**62
"""Sizes count up to this: exact ones of long chains of calls would be numbers of thousands of digits."""
_NAMES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


class Limits(Frozen):
    """How much a command may read and make. `memory` is in bytes, None for the machine's.

    `nodes` are those of a document, custom operations written out; `expansion` those that one thing may stand for, beyond what is
    written in the file: a custom operation written out, a formula. Rules and tracers work through them one by one. `steps` are
    those of all loops in one evaluation, None for any number: who gives the inputs knows how long a loop should run at them.
    """

    memory: int | None = None
    nodes: int = 100_000_000
    expansion: int = 200_000
    steps: int | None = None

    def bytes(self) -> int:
        """The bytes that values may take; 2**62, which is more than there are, if nobody knows."""
        if self.memory is not None:
            return self.memory
        memory = machine_memory()
        return 2**62 if memory is None else memory


def variable(limit: str) -> str:
    """The environment variable of a limit: TIDU_MAX_NODES."""
    return f"TIDU_MAX_{limit.upper()}"


def limits() -> Limits:
    """The limits in force. Raises EvaluationError for a variable of the environment that is no limit."""
    if chosen := _limits.get():
        return chosen
    given = {name: os.environ[variable(name)] for name in field_names(Limits) if os.environ.get(variable(name))}
    return Limits(**{name: parse_size(text) if name == "memory" else parse_count(text) for name, text in given.items()})


def allowed_steps() -> int | None:
    """The limit on steps in force, None if there is none: of all limits only this one is looked up, as each run does."""
    chosen = _limits.get()
    if chosen is not None:
        return chosen.steps
    text = os.environ.get(_STEPS)
    return parse_count(text) if text else None


@contextmanager
def limited(chosen: Limits) -> Iterator[None]:
    """Within the block these limits are in force."""
    token = _limits.set(chosen)
    try:
        yield
    finally:
        _limits.reset(token)


_STEPS = variable("steps")

_limits: ContextVar[Limits | None] = ContextVar("limits", default=None)


def require(name: str, needed: int, what: str) -> None:
    """Raises LimitError if `what` needs more than the limit of this name."""
    allowed = limits().bytes() if name == "memory" else getattr(limits(), name)
    if needed > allowed:
        told = format_size(needed) if name == "memory" else f"{needed:,} nodes"
        raise LimitError(f"{what}: {told}, {more_than(name, allowed)}")


def written_out(root: H, sizes: Mapping[H, int], callees: Mapping[H, Sequence[H]]) -> int:
    """How many nodes a function stands for, with functions of these sizes in the place of their calls; up to `ENDLESS`.

    Linear in the calls. Functions that call themselves, or that are not there, are for their reader to refuse.
    """
    totals: dict[H, int] = {}
    todo, entered = [root], set[H]()
    while todo:
        name = todo[-1]
        if name not in sizes or name in totals:
            todo.pop()
        elif name not in entered:
            entered.add(name)
            todo += [callee for callee in dict.fromkeys(callees[name]) if callee not in entered]
        else:
            todo.pop()
            totals[name] = min(sizes[name] + sum(totals.get(callee, 0) for callee in callees[name]), ENDLESS)
    return totals.get(root, 0)


def more_than(name: str, allowed: int, meanwhile: str = "") -> str:
    """What a refusal ends with: the limit, and the way to allow more; `meanwhile` stands between."""
    told, unit = (format_size(allowed), "SIZE") if name == "memory" else (f"{allowed:,}{' steps' * (name == 'steps')}", "N")
    argument = f"max_{name}=, or " if name in ("memory", "steps") else ""
    way = Remedy(f"max_{name}", unit, python=f"{argument}os.environ['{variable(name)}']")
    return f"more than the limit of {told}; {meanwhile}allow more with {way}"


MOST_DRAWN = 500
"""Graphviz draws more things than this slowly, and nobody reads the result."""

EDGES_DRAWN = 4
"""As many edges are drawn for each thing that the limit allows: most graphs have half as many."""

DRAWN_STEPS = 1_000_000
"""The limit on steps where inputs are drawn and none was set: nobody knows whether a loop comes to an end at them."""


@contextmanager
def limited_steps(allowed: int | None, *, drawn: bool = False) -> Iterator[None]:
    """Within the block so many steps are allowed; for None what was set before, or for inputs that are drawn `DRAWN_STEPS`."""
    before = limits()
    with limited(replace(before, steps=allowed or before.steps or (DRAWN_STEPS if drawn else None))):
        yield


class Steps:
    """The steps that the loops of one evaluation have left. `all` gives one for each, whoever asks for it."""

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        self.all = iter(range(min(allowed, 2**62)))

    @property
    def left(self) -> int:
        """How many there are."""
        return length_hint(self.all)

    def take(self, n: int) -> None:
        """Take so many. Raises StepsError if there are fewer."""
        if n and next(islice(self.all, n - 1, n), None) is None:
            raise self.refusal()

    def refusal(self) -> StepsError:
        """What is raised where more are wanted."""
        return StepsError(f"its loops run on, {more_than('steps', self.allowed)}")


class StepCounting:
    """A block that is one evaluation: its loops share one limit on steps, which is looked up by the first of them."""

    def __enter__(self) -> None:
        self._token = _steps.set(...)

    def __exit__(self, *of_error: object) -> None:
        _steps.reset(self._token)


_steps: ContextVar[Any] = ContextVar("steps", default=None)


def steps() -> Steps | None:
    """The steps that are left to the evaluation that goes on; None if there is no limit."""
    left = _steps.get()
    if left is ...:
        allowed = allowed_steps()
        left = None if allowed is None else Steps(allowed)
        _steps.set(left)
    return left  # type: ignore[no-any-return]


def each_step() -> Iterator[Any]:
    """What a loop of unknown length iterates over: once more than there are steps left, as in the end it only looks on."""
    left = steps()
    return repeat(None) if left is None else chain((None,), left.all)


def take_steps(n: int) -> None:
    """Take the steps of a loop of known length, before it runs. Raises StepsError."""
    left = steps()
    if left is not None:
        left.take(n)


def refuse_steps() -> NoReturn:
    """Raises StepsError, where `each_step` has ended."""
    left = steps()
    assert left is not None
    raise left.refusal()


def parse_count(text: str) -> int:
    """A number of nodes or steps from text such as `500000`, `200k`, `10M`; k, M, G are powers of 1000. Raises EvaluationError."""
    match = re.fullmatch(r"([0-9]{1,12})([kKMG]?)", text.strip())
    if match is not None and not int(match[1]):
        raise EvaluationError("a limit of 0 allows nothing; the least is 1")
    if match is None:
        raise EvaluationError(f"malformed count '{text[:40]}': write it as 500000, 200k or 10M")
    scale: int = 1000 ** " KMG".index(match[2].upper() or " ")
    return int(match[1]) * scale


def parse_size(text: str) -> int:
    """A number of bytes from text such as `512M`, `2G`, `1.5GiB`, `64MB` or `4096`.

    `K`, `M`, `G`, `T`, `P` and `KiB` etc. are powers of 1024, `KB` etc. powers of 1000. Raises EvaluationError.
    """
    match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?)\s*([KMGTP]?)(I?B)?", text.strip(), re.IGNORECASE | re.ASCII)
    if match is None or (match[3] and not match[2] and match[3].upper() == "IB"):
        raise EvaluationError(f"malformed size '{text[:40]}': write it as 512M, 2G, 1.5GiB or a number of bytes")
    prefix, decimal = match[2].upper(), (match[3] or "").upper() == "B"
    power = " KMGTP".index(prefix or " ")
    scale = int((1000 if decimal else 1024) ** power)
    whole, _, fraction = match[1].partition(".")
    return int(whole) * scale + int(fraction or 0) * scale // int(10 ** len(fraction))


def format_size(n_bytes: int) -> str:
    """A number of bytes for people: `512 MiB`, `1.5 GiB`."""
    power = min(max(n_bytes.bit_length() - 1, 0) // 10, 5)
    size = n_bytes / 2 ** (10 * power)
    return f"{size:.3g} {_NAMES[power]}" if size < 1000 else f"{size:.0f} {_NAMES[power]}"


@cache
def machine_memory() -> int | None:
    """The bytes this process may use: physical memory or its control group's limit, the lesser. None if neither is known.

    The system is asked once: each evaluation is held against it.
    """
    from pathlib import Path

    bounds = list(_cgroup_limits(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")))
    with suppress(AttributeError, ValueError, OSError):  # not a POSIX system
        bounds.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(bounds, default=None)


def _cgroup_limits(membership: Path, root: Path) -> Iterator[int]:
    """The limits on this process's control groups (v1 or v2) and on those around them.

    Within a container the paths that the kernel tells may be the host's: then the mounted root stands for the container.
    """
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            top, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            top, name = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = top / path.strip("/")
        for folder in [group, *group.parents]:
            with suppress(OSError, ValueError):  # no such group here, or its limit is the word "max"
                yield int((folder / name).read_text())
            if folder == top:
                break
