"""Programs that are called often, for `auto`: other engines are tried on calls as they come, and the quickest takes over."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from threading import Lock
from typing import Any, NamedTuple

from tidu_cli.errors import EvaluationError, TiduError
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.keys import Key
from tidu_cli.runtime.choosing import MANY, NUMPY, PLAIN, Choice, costs, refused_by
from tidu_cli.runtime.memory import check_memory
from tidu_cli.runtime.plans.interpreter import Run, Runnable
from tidu_cli.runtime.plans.program import prepared

clock: Callable[[], float] = time.perf_counter
"""The seconds that trials go by. In tests no time passes."""

FIRST = 16
"""After this number of calls, `MANY` more are expected. Before, nothing is tried that costs more than all calls took."""

ROUNDS, LONG = 16, 0.1
"""A trial ends after `ROUNDS` runs, or after `LONG` seconds."""

NEARLY, LATER = 2.0, 10.0
"""An engine that takes less than `NEARLY` times as long is tried once more, as the machine may have been busy. That second trial is
estimated at `LATER` times the price of the first."""

SHARE = 1 / 16
"""A trial takes this part of a batch at most, but for what the first engine takes at once."""

FEWEST = 4
"""A trial is estimated at the price of this number of calls, at least."""

QUICKER = 0.85
"""An engine takes over if it needs less than this part of the time: results differ by roundings, so not for a trifle."""


class _Rival(NamedTuple):
    """An engine that may be tried, and the seconds that making it ready and trying it are expected to take; or once `more`."""

    name: str
    cost: float
    more: bool = False


def prepared_often(graph: Graph, choice: Choice, tell: Callable[[str], object] = str) -> tuple[Runnable, Choice]:
    """A self-contained graph made ready to be called many times, and by which engine it is at first.

    `tell` hears of engines that are tried later. Raises as `prepared`.
    """
    if not choice.automatic:
        return prepared(graph, choice)
    program = Trial(graph, choice, tell)
    return program, program.choice


class Trial(Runnable):
    """The program of one engine until another has been tried and is quicker: results are of one engine until then.

    An engine is tried within a call, after the result is there, and on what was given: never in the first call; once all calls took
    longer than what trials take, so that in all no more than twice the time is spent; or after `FIRST` calls if `MANY` such calls
    would. What fails or refuses the graph is left out. `choice` says which engine runs, and why. Threads may call it at once: one
    of them tries, and the others go on.
    """

    def __init__(self, graph: Graph, choice: Choice, tell: Callable[[str], object] = str) -> None:
        self._whole, self._device, self._tell = graph, choice.device, tell
        self._program, self.choice = prepared(graph, choice)
        self.graph, self.primitives = self._program.graph, self._program.primitives
        self.inputs, self.outputs = self._program.inputs, self._program.outputs
        self._lock = Lock()
        self._rivals: list[_Rival] | None = None  # not known before the second call
        self._why, self._left = self.choice.reason, dict[str, str]()  # what became of engines that were tried and not taken
        self._calls, self._spent, self._paid, self._least = 0, 0.0, 0.0, float("inf")

    @property
    def current(self) -> Runnable:
        """The program that runs now."""
        return self._program

    def nbytes(self) -> int:
        """Likewise of the program that runs now."""
        return self._program.nbytes()

    def run_in_order(self, values: Sequence[Any], *, once: bool = False) -> list[Any]:
        """The values of `outputs`. An engine that took over and fails is replaced by NumPy, if that does not fail."""
        if self._rivals != [] and self._lock.acquire(blocking=False):
            try:
                return self._watched(values, once=once)
            finally:
                self._lock.release()
        return self._run(values, once=once)

    def _run(self, values: Sequence[Any], *, once: bool) -> list[Any]:
        program = self._program
        try:
            return program.run_in_order(values, once=once)
        except TiduError as error:
            if self.choice.name == NUMPY:
                raise
            plain, name = prepared(self._whole, PLAIN)[0], self.choice.name
            results = plain.run_in_order(values, once=once)
            self._rivals = []
            self._take(plain, NUMPY, f"as the engine {name} failed: {error}")
            return results

    def _watched(self, values: Sequence[Any], *, once: bool) -> list[Any]:
        """The results of a run, after which others may be tried."""
        began = clock()
        results = self._run(values, once=once)
        taken = clock() - began
        self._calls, self._spent, self._least = self._calls + 1, self._spent + taken, min(self._least, taken)
        if self._calls > 1 and self._rivals is None:
            self._rivals = _rivals(self._whole, self.choice.name)
        while self._rivals and self._is_due(self._rivals[0]):
            taken = self._try(self._rivals.pop(0), values, taken)
        return results

    def _is_due(self, rival: _Rival) -> bool:
        price = rival.cost + FEWEST * self._least
        soon = self._calls >= FIRST and not rival.more and MANY * self._least >= price
        return soon or self._spent >= self._paid + price

    def _try(self, rival: _Rival, values: Sequence[Any], taken: float) -> float:
        """Try an engine on the values of a run of `taken` seconds, and take it if it is quicker. Returns what a run takes then."""
        name, began = rival.name, clock()
        try:
            program = self._ready(name)
            theirs, ours = self._by_turns(program, values, taken)
        except Exception as error:  # whatever it is, the result is there, and the next call goes on as this one
            self._leave(name, _left_out(name, error))
        else:
            if theirs < QUICKER * ours:
                self._take(program, name, f"as a run takes {_told(theirs)}, with {self.choice.name} {_told(ours)}")
                self._least = taken = theirs
            else:
                self._leave(name, f"{name} takes {_told(theirs)} a run, {self.choice.name} {_told(ours)}")
                if theirs < NEARLY * ours and not rival.more:
                    assert self._rivals is not None
                    self._rivals.append(_Rival(name, LATER * (clock() - began), more=True))
                    self._rivals.sort(key=lambda rival: rival.cost)
        finally:
            self._paid += clock() - began
        return taken

    def _ready(self, name: str) -> Runnable:
        """The program of an engine. Raises EvaluationError, and what engines raise."""
        if refusal := refused_by(name, self._whole):
            raise EvaluationError(refusal)
        program, _ = prepared(self._whole, Choice(name, "", self._device))
        check_memory(program, None)
        if [i.key for i in program.inputs] != [i.key for i in self.inputs]:
            raise EvaluationError("its program takes other inputs")
        return program

    def _by_turns(self, program: Runnable, values: Sequence[Any], taken: float) -> tuple[float, float]:
        """The least seconds of a run of another program and of this one."""
        theirs, ours, begin = float("inf"), taken, clock()
        for k in range(ROUNDS):
            started = clock()
            program.run_in_order(values)
            now = clock()
            theirs = min(theirs, now - started)
            # A first run prepares some things: it says enough if it is quicker all the same, or much slower.
            if now - begin > LONG and (k or not ours <= theirs <= 4 * ours):
                break
            self._program.run_in_order(values)
            ours = min(ours, clock() - now)
        return theirs, ours

    def _take(self, program: Runnable, name: str, why: str) -> None:
        self._left.pop(name, None)
        self._program, self._why = program, why
        self.choice = Choice(name, "; ".join((why, *self._left.values())), self._device)
        self._tell(f"engine {name}, {why}")

    def _leave(self, name: str, why: str) -> None:
        self._left[name] = why
        self.choice = self.choice._replace(reason="; ".join((self._why, *self._left.values())))
        self._tell(f"engine {why}")


def quickest(
    graph: Graph,
    choice: Choice,
    run: Run,
    ready: Callable[[Choice, int], tuple[Run, int]],
    given: Callable[[int], Mapping[Key, Any]],
    size: int,
    chunk: int,
    tell: Callable[[str], object],
) -> tuple[Run, int, list[Any]]:
    """What runs a batch of `size` items by the quickest engine, how many it takes at once, and its results for the first of them.

    `run` of `choice` takes `chunk` items. It begins; others are tried where they can save what they cost, by half of what the batch
    is expected to take. `ready` makes an engine ready for a number of items, or fewer; `given` has the inputs of that number.
    """
    name, device, paid = choice.name, choice.device, 0.0
    seconds, results = _timed(run, given(chunk))
    for rival in _rivals(graph, name):
        an_item = seconds / chunk
        many = max(chunk, int(size * min(LONG / (size * an_item), SHARE))) if an_item else chunk
        if 2 * (paid + rival.cost + 2 * many * an_item) >= size * an_item:
            continue
        began = clock()
        try:
            if refusal := refused_by(rival.name, graph):
                raise EvaluationError(refusal)
            other, many = ready(Choice(rival.name, "", device), many)
            theirs, first = _at_best(other, given(many))
            if name == choice.name and not paid:  # its first run made some things ready, too
                seconds, results = min((seconds, results), _at_best(run, given(chunk)), key=itemgetter(0))
        except Exception as error:  # whatever it is, the batch can be done without
            tell(f"engine {_left_out(rival.name, error)}")
        else:
            if theirs / many < QUICKER * seconds / chunk:
                tell(f"engine {rival.name}, as it takes {theirs / many:.1e} s an item, {name} {seconds / chunk:.1e}")
                run, name, chunk, seconds, results = other, rival.name, many, theirs, first
            else:
                tell(f"engine {rival.name} takes {theirs / many:.1e} s an item, {name} {seconds / chunk:.1e}")
        finally:
            paid += clock() - began
    return run, chunk, results


def _at_best(run: Run, part: Mapping[Key, Any]) -> tuple[float, list[Any]]:
    """The least seconds of two runs, but for a long one, and the results."""
    seconds, results = _timed(run, part)
    return (seconds, results) if seconds > LONG else min((seconds, results), _timed(run, part), key=itemgetter(0))


def _timed(run: Run, part: Mapping[Key, Any]) -> tuple[float, list[Any]]:
    began = clock()
    results = run(part)
    return clock() - began, results


def _rivals(graph: Graph, name: str) -> list[_Rival]:
    """The engines besides one that may be tried, those first that cost least."""
    known = [_Rival(other, cost) for other, cost in costs(graph, FEWEST).items() if other != name]
    return sorted(known, key=lambda rival: rival.cost)


def _left_out(name: str, error: Exception) -> str:
    return f"{name} was left out: {' '.join(str(error).split()) or type(error).__name__}"


def _told(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"
