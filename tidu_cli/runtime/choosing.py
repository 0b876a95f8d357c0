"""The engines by name, what is installed of them, and which one runs a graph."""

from __future__ import annotations

import os
from collections import Counter
from typing import NamedTuple

from tidu_cli import installed
from tidu_cli.errors import EvaluationError, UnknownNameError, did_you_mean
from tidu_cli.graph.closed import closed_graphs
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.select import listed
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import TensorType
from tidu_cli.installed import OWN_ENGINES
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.ports import Engine

AUTO, NUMPY = "auto", "numpy"

VARIABLE = "TIDU_ENGINE"
"""The environment variable that names the engine where nothing else does."""

NAMES = [AUTO, NUMPY, *OWN_ENGINES]
"""What users may say, besides engines that other packages bring."""


def is_installed(engine: Engine) -> bool:
    """Whether its package is there, which is not imported for that."""
    from importlib.util import find_spec  # slow to import

    return find_spec(engine.package) is not None


def takes(engine: Engine, graph: Graph) -> bool:
    """Whether an engine is installed, and does not refuse a graph."""
    return is_installed(engine) and engine.refusal(graph, vocabulary(graph.cases)) is None


def refused_by(name: str, graph: Graph) -> str | None:
    """Why an engine cannot run a graph, None if it can; NumPy always can. Raises EvaluationError if it is not installed."""
    return None if name == NUMPY else engine_named(name).refusal(graph, vocabulary(graph.cases))


def _has_devices(name: str) -> bool:
    engine = installed.engine_named(name)
    return engine is not None and engine.devices


def engine_named(name: str) -> Engine:
    """An engine other than NumPy. Raises EvaluationError that says what to install."""
    engine = installed.engine_named(name)
    if engine is None:
        raise UnknownNameError(f"no engine '{name}'")
    if not is_installed(engine):
        raise EvaluationError(f"the engine {engine.name} needs the package {engine.package}: pip install 'tidu[{engine.extra}]'")
    return engine


def default_engine() -> str:
    """What the environment says, else auto. Raises UnknownNameError."""
    return require_engine(os.environ.get(VARIABLE) or AUTO)


def require_engine(name: str) -> str:
    """The name of an engine. Raises UnknownNameError."""
    if name not in NAMES and name not in installed.brought_engines():
        known = [*NAMES, *installed.brought_engines()]
        raise UnknownNameError(f"no engine '{name}'{did_you_mean(name, known)} (engines: {listed(known)})")
    return name


class Choice(NamedTuple):
    """Which engine runs a graph, on which of its devices (None for its own choice), and why, in a few words.

    Where it is `automatic` it may be replaced: by NumPy if it fails, and by what `trial` finds quicker.
    """

    name: str
    reason: str
    device: str | None = None
    automatic: bool = False


PLAIN = Choice(NUMPY, "as it is the default")

FEW = 1
MANY = 1000
"""How often a graph will be run, as far as one knows: evaluated once, or compiled to be called."""

WORTHWHILE = 3e-2
"""The seconds that an engine has to save for `auto` to take it."""

_PLAN, _CALL, _NUMBER, _TURN = 0.4e-6, 0.7e-6, 0.1e-6, 0.04e-6
"""Seconds that NumPy takes: for each node before a first run; for an operation on arrays, on numbers, and on numbers in a loop,
which is a function of Python (docs/performance.md, Engines)."""


def chosen(graph: Graph, name: str, *, device: str | None = None, runs: int = FEW) -> Choice:
    """The engine that will run a self-contained graph: the one named, or for `auto` the one that takes the least time in all.

    `auto` takes NumPy unless an engine that is installed saves `WORTHWHILE`, and one that refuses it never. It looks at cases
    and imports no library. Raises UnknownNameError, and EvaluationError for a device that the engine named does not have.
    """
    require_engine(name)
    elsewhere = device not in (None, "cpu")
    if name == NUMPY or (name != AUTO and elsewhere and not _has_devices(name)):
        if elsewhere:
            able = listed([engine.name for engine in installed.own_engines().values() if engine.devices])
            raise EvaluationError(f"the engine {name} has no device '{device}', only cpu: choose the engine {able}")
        return Choice(name, "as asked for", device)
    if name != AUTO:
        return Choice(name, "as asked for", device)
    if elsewhere:
        able = next(engine.name for engine in installed.own_engines().values() if engine.devices)
        return Choice(able, f"as it has the device {device}", device)
    work = _work(graph)
    best = Choice(NUMPY, f"{work.calls:,} operations, {work.numbers:,} of them of single numbers", device, automatic=True)
    seconds = graph.n_nodes * _PLAN + runs * work.seconds - WORTHWHILE
    if seconds <= 0:
        return best
    for engine in installed.own_engines().values():
        estimate = engine.seconds(graph.n_nodes, work.calls, work.numbers, runs, _CALL)
        if estimate < seconds and takes(engine, graph):
            best, seconds = best._replace(name=engine.name), estimate
    return best


def costs(graph: Graph, runs: int) -> dict[str, float]:
    """The seconds that `runs` runs should take with each installed engine, the preparation of the graph included."""
    work = _work(graph)
    known = {NUMPY: graph.n_nodes * _PLAN + runs * work.seconds}
    for engine in installed.own_engines().values():
        if is_installed(engine):
            known[engine.name] = engine.seconds(graph.n_nodes, work.calls, work.numbers, runs, _CALL)
    return known


class _Work(NamedTuple):
    """How many operations a run makes, how many of these take and give single numbers, and the seconds that NumPy takes."""

    calls: int
    numbers: int
    seconds: float


_TURNS = 100
"""How often a loop runs of which only its run can tell."""


def _work(graph: Graph, number: float = _NUMBER) -> _Work:
    """The work of a run, where an operation on numbers takes NumPy so many seconds."""
    calls, numbers, seconds = 0, 0, 0.0
    for code, n in Counter(graph.code).items():
        case = graph.cases[code]
        inner = [_work(closed.graph, _TURN) for closed in closed_graphs(case.attrs)]
        if inner:
            length = getattr(case.attrs, "length", _TURNS) if "cond" not in case.op else 1
            turns = n * (_TURNS if isinstance(length, OpenSize) else length)
            calls += turns * sum(w.calls for w in inner)
            numbers += turns * sum(w.numbers for w in inner)
            seconds += turns * sum(w.seconds for w in inner)
        calls += n
        of_numbers = all(isinstance(t, TensorType) and not t.shape for t in (*case.operands, *case.results))
        numbers += n * of_numbers
        seconds += n * (number if of_numbers else _CALL)
    return _Work(calls, numbers, seconds)
