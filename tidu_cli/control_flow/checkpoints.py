"""A scan that stores residuals for another, in segments: it stores what is carried into each, and the other computes the rest anew.

Of n steps in segments of k the first pass holds n / k states. The second takes the segments one by one: it stores the state before
each of the k steps, and computes residuals from that state, so that it never holds more than n / k + k states (Griewank and
Walther, "Evaluating Derivatives", ch. 12, with two levels). Steps that are left over are a shorter segment of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tidu_cli.control_flow.dependence import output_values
from tidu_cli.control_flow.graphs import made, named
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.sizes.open import surely
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.rules.recording.trace import emitted
from tidu_cli.rules.terms import Recorder, Term, op

Values = Sequence[Term]

reshape, slice_, concatenate = op("reshape"), op("slice"), op("concatenate")


@dataclass
class Checkpointed:
    """Two scans of `one` length: `links` says of each operand of `other` which result of the first it is, or None.

    `kept` are the numbers of the first one's results that others need, too; `steps` is how many a segment has.
    """

    one: Any
    other: Any
    links: Sequence[int | None]
    kept: Sequence[int]
    steps: int

    @property
    def applies(self) -> bool:
        """Whether there are segments, and something carried into them, of arrays."""
        one, other = self.one, self.other
        types = [*one.body.input_types, *one.body.output_types, *other.body.input_types, *other.body.output_types]
        scanned = range(other.num_consts + other.num_carry, len(self.links))
        fits = all(link is None or (k in scanned and link >= one.num_carry) for k, link in enumerate(self.links))
        return (
            fits
            and one.length == other.length
            and not surely(lambda: one.length <= self.steps)
            and one.num_carry > 0
            and all(isinstance(t, TensorType) for t in types)
        )

    def first(self, operands: Sequence[Term]) -> tuple[list[Term | None], list[Term]]:
        """Emit the first scan. Gives its results, None for those that nobody needs, and the states that it stores."""
        one, trace = self.one, operands[0].trace
        consts, carry, xs = one.split(operands)
        ys = [k for k in self.kept if k >= one.num_carry]

        def step(inner: Recorder, terms: Sequence[Term]) -> list[Term]:
            return self._of_first(inner, terms, [*range(one.num_carry), *ys])

        body = made(trace.primitives, named("x", one.body.input_types), step)
        main, rest = zip(*[self._parts(x) for x in xs], strict=True) if xs else ((), ())
        carry, arrays = self._in_segments(trace, body, consts, carry, main)
        states, stacked = arrays[: one.num_carry], [[y] for y in arrays[one.num_carry :]]
        states = [*states, *carry]
        if self._rest != 0:
            carry, arrays = _scan(trace, self._rest, one.reverse, body, consts, carry, [r for r in rest if r is not None])
            stacked = [[y, more] for (y,), more in zip(stacked, arrays, strict=True)]
        results: dict[int, Term] = dict(enumerate(carry))
        results |= {k: self._joined(parts) for k, parts in zip(ys, stacked, strict=True)}
        return [results[k] if k in self.kept else None for k in range(len(one.body.graph.outputs))], states

    def second(self, operands: Sequence[Term], of_first: Sequence[Term], states: Sequence[Term]) -> list[Term]:
        """Emit the second scan, for its operands, those of the first, and what that has stored. Gives its results."""
        one, other, trace = self.one, self.other, states[0].trace
        n_carry = one.num_carry
        consts_one, _, xs_one = one.split(of_first)
        consts, carry, xs = other.split(operands)
        own = [x for x, link in zip(xs, self.links[other.num_consts + other.num_carry :], strict=True) if link is None]
        fixed = [*consts_one, *consts]
        parts = [self._parts(x) for x in (*xs_one, *own)]
        main, rest = [p[0] for p in parts], [p[1] for p in parts]
        in_steps = self._second_step(trace.primitives)
        in_segments = self._second_segment(trace.primitives, in_steps, len(xs_one), [x.type for x in main])
        before, at_end = states[:n_carry], states[n_carry:]
        slices: dict[bool, Sequence[Term]] = {}
        for is_main in (True, False) if one.reverse == other.reverse else (False, True):
            if is_main:
                scanned = [*before, *main]
                carry, slices[True] = _scan(trace, self._segments, other.reverse, in_segments, fixed, carry, scanned)
                slices[True] = [_merged(y) for y in slices[True]]
            elif self._rest != 0:
                given, n = [x for x in rest if x is not None], self._rest
                states_of = self._state_step(trace.primitives)
                _, inside = _scan(trace, n, one.reverse, states_of, consts_one, at_end, given[: len(xs_one)])
                carry, slices[False] = _scan(trace, n, other.reverse, in_steps, fixed, carry, [*inside, *given])
        stacked = zip(*[slices[k] for k in (True, False) if k in slices], strict=True)
        return [*carry, *[self._joined(list(parts)) for parts in stacked]]

    @property
    def _segments(self) -> int:
        return self.one.length // self.steps  # type: ignore[no-any-return]

    @property
    def _rest(self) -> int:
        return self.one.length % self.steps  # type: ignore[no-any-return]

    def _of_first(self, trace: Recorder, terms: Sequence[Term], outputs: Sequence[int]) -> list[Term]:
        values = output_values(self.one.body)
        return emitted(trace, self.one.body.graph, dict(enumerate(terms)), [values[k] for k in outputs])

    def _state_step(self, primitives: Any) -> ClosedGraph:
        """A step of the first scan that gives what is carried into it."""
        n, n_carry = self.one.num_consts, self.one.num_carry

        def step(inner: Recorder, terms: list[Term]) -> list[Term]:
            return [*self._of_first(inner, terms, range(n_carry)), *terms[n : n + n_carry]]

        return made(primitives, named("x", self.one.body.input_types), step)

    def _second_step(self, primitives: Any) -> ClosedGraph:
        """A step of the second scan that computes residuals from what is carried into the first one's."""
        one, other = self.one, self.other
        c_one, s_one, x_one = one.split(one.body.input_types)
        c_other, s_other, x_other = other.split(other.body.input_types)
        links = self.links[other.num_consts + other.num_carry :]
        own = [t for t, link in zip(x_other, links, strict=True) if link is None]

        def step(inner: Recorder, terms: list[Term]) -> list[Term]:
            rest: Iterator[Term] = iter(terms)
            consts_one, consts, carry, state, xs_one = (
                [next(rest) for _ in some] for some in (c_one, c_other, s_other, s_one, x_one)
            )
            wanted = [link for link in links if link is not None]
            residuals = dict(zip(wanted, self._of_first(inner, [*consts_one, *state, *xs_one], wanted), strict=True))
            xs = [next(rest) if link is None else residuals[link] for link in links]
            known = dict(enumerate([*consts, *carry, *xs]))
            return emitted(inner, other.body.graph, known, output_values(other.body))

        return made(primitives, named("x", [*c_one, *c_other, *s_other, *s_one, *x_one, *own]), step)

    def _second_segment(self, primitives: Any, step: ClosedGraph, n_xs: int, scanned: Sequence[TensorType]) -> ClosedGraph:
        """A segment of the second scan: the states within it, and from these its steps."""
        one, other = self.one, self.other
        c_one, s_one, _ = one.split(one.body.input_types)
        c_other, s_other, _ = other.split(other.body.input_types)
        slices: list[Type] = [t.with_shape(t.shape[1:]) for t in scanned]

        def segment(inner: Recorder, terms: list[Term]) -> list[Term]:
            rest: Iterator[Term] = iter(terms)
            consts_one, consts, carry, state = ([next(rest) for _ in some] for some in (c_one, c_other, s_other, s_one))
            xs = list(rest)
            _, states = _scan(inner, self.steps, one.reverse, self._state_step(primitives), consts_one, state, xs[:n_xs])
            out, ys = _scan(inner, self.steps, other.reverse, step, [*consts_one, *consts], carry, [*states, *xs])
            return [*out, *ys]

        return made(primitives, named("x", [*c_one, *c_other, *s_other, *s_one, *slices]), segment)

    def _in_segments(
        self, trace: Recorder, body: ClosedGraph, consts: Values, carry: Values, xs: Values
    ) -> tuple[list[Term], list[Term]]:
        """A scan over segments, each a scan over steps. Gives what is carried into each segment, then the slices as one array."""
        n, n_carry, reverse = len(consts), len(carry), self.one.reverse

        def segment(inner: Recorder, terms: list[Term]) -> list[Term]:
            out, ys = _scan(inner, self.steps, reverse, body, terms[:n], terms[n : n + n_carry], terms[n + n_carry :])
            return [*out, *terms[n : n + n_carry], *ys]

        types = [*[t.value_type for t in (*consts, *carry)], *[x.type.with_shape(x.type.shape[1:]) for x in xs]]
        graph = made(trace.primitives, named("x", types), segment)
        out, arrays = _scan(trace, self._segments, reverse, graph, consts, carry, xs)
        return out, [*arrays[:n_carry], *[_merged(y) for y in arrays[n_carry:]]]

    def _parts(self, x: Term) -> tuple[Term, Term | None]:
        """What is scanned, in segments, and what is left over, which the last steps of the first scan take."""
        n, m = self.one.length, self._segments * self.steps
        first, rest = ((n - m, n), (0, n - m)) if self.one.reverse else ((0, m), (m, n))
        whole = _cut(x, *first)
        return reshape(whole, new_sizes=(self._segments, self.steps, *x.type.shape[1:])), _cut(x, *rest) if n != m else None

    def _joined(self, parts: Sequence[Term]) -> Term:
        ordered = parts[::-1] if self.one.reverse else parts
        return concatenate(*ordered, dimension=0) if len(ordered) > 1 else parts[0]


def segmented(
    one: Any, other: Any, links: Sequence[int | None], kept: Sequence[int], steps: Callable[[int], int]
) -> Checkpointed | None:
    """Two scans in segments; None where there is nothing to store less of."""
    checkpointed = Checkpointed(one, other, links, kept, max(steps(one.length), 1))
    return checkpointed if checkpointed.applies else None


def _scan(
    trace: Recorder, length: int, reverse: bool, body: ClosedGraph, consts: Values, carry: Values, xs: Values
) -> tuple[list[Term], list[Term]]:
    """Emit a scan. Gives what is carried out, and the results."""
    results = trace.emit_all(
        "scan", *consts, *carry, *xs, length=length, reverse=reverse, num_consts=len(consts), num_carry=len(carry), body=body
    )
    return list(results[: len(carry)]), list(results[len(carry) :])


def _merged(y: Term) -> Term:
    """Slices by segment and step, as one array of slices."""
    segments, steps, *shape = y.type.shape
    return reshape(y, new_sizes=(segments * steps, *shape))


def _cut(x: Term, first: int, end: int) -> Term:
    if (first, end) == (0, x.type.shape[0]):
        return x
    zeros = (0,) * (x.type.rank - 1)
    return slice_(x, start_indices=(first, *zeros), limit_indices=(end, *x.type.shape[1:]))
