"""Functions of JAX: those of its own that define a derivative, which modules have lost, and several nodes written as one.

relu and relu6 are known by their name and by all that they compute. JAX lowers each as a function of the module, with a number
behind its name from the second on. Users' functions that are alike in both are taken for JAX's: nothing in a module tells them
apart. logaddexp, of which softplus and log_sigmoid are made, leaves no function, and is known by what it computes. Of further
ones that keep their name a note says that their derivative is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from tidu_cli.adapters.stablehlo.module import Block, Function, Module, Operation
from tidu_cli.adapters.stablehlo.reading.site import array_of
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.open_sizes import has_open_size
from tidu_cli.graph.types import FLOATS
from tidu_cli.rules.recording.known import Recording, inlined
from tidu_cli.rules.terms import Term

Bounds = tuple[tuple[str, str], ...]
"""Operations with constants that stand one within the next, the inmost first."""

_KINKS: dict[str, Bounds] = {
    "relu": (("stablehlo.maximum", "0.0"),),
    "relu6": (("stablehlo.maximum", "0.0"), ("stablehlo.minimum", "6.0")),
}
_CHOOSES = {"stablehlo.maximum": "le", "stablehlo.minimum": "ge"}


_LOST = re.compile(r"(sinc|i0|log_ndtr|expi|sici|expn|poch|fresnel|logit|xlogy|xlog1py|erfcx|dawsn|owens_t)(_\d+)?")
"""Functions for which JAX defines a derivative other than that of what they compute, and which modules hold by name."""


def lost_rules(module: Module) -> str:
    """A note on functions whose derivative is not JAX's, empty if there are none."""
    names = {match[1] for f in module.functions.values() if not f.public and (match := _LOST.fullmatch(f.name))}
    if not names:
        return ""
    what = f"@{', @'.join(sorted(names))}"
    return f"modules do not hold the derivative that JAX defines for {what}; it is derived as it is computed"


def bounds_of(function: Function) -> Bounds | None:
    """The bounds of a function of JAX's which has the derivative of the one it chooses, the constant in ties; None for others."""
    name = re.fullmatch(r"(relu6?)(_\d+)?", function.name)
    if name is None or function.public or len(function.results) != 1 or function.body.arguments != function.results:
        return None
    return bounds if (bounds := _computed(function.body)) == _KINKS[name[1]] else None


def bounded(recording: Recording, x: Term, bounds: Bounds) -> Term:
    """The number or the bound, by choice: the same bits, also of -0.0 and NaN."""
    for op, bound in bounds:
        limit = recording.full(float(bound), x.type)
        x = recording.emit("select_n", recording.emit(_CHOOSES[op], x, limit), x, limit)
    return x


def _computed(body: Block) -> Any:
    """What a block computes of its argument, if that is bounds alone; constants have their digits, as -0.0 is another bound."""
    computed: dict[int, Any] = {body.first: ()}
    for o in body.operations:
        match o.name, [computed.get(v) for v in o.operands]:
            case "stablehlo.constant", []:
                array, type_ = array_of(o.attributes["value"])
                computed[o.first] = repr(float(array.item())) if array.size == 1 and type_.dtype in FLOATS else None
            case "stablehlo.broadcast_in_dim", [str() as constant]:
                computed[o.first] = constant
            case ("stablehlo.maximum" | "stablehlo.minimum") as op, [tuple() as within, str() as constant]:
                computed[o.first] = (*within, (op, constant))
    return computed.get(body.results[0])


Choices = dict[int, tuple[int, int]]
"""Of operations that are read as choices, by the numbers of their results: the operands whose order they go by."""

_LONGEST = 8
"""Operations at most between the two kinks of a logaddexp, and broadcasts of a constant."""


def cancelling_kinks(block: Block) -> Choices:
    """The maximum of a and b and |a - b| in each logaddexp of a block: their kinks cancel where both go by one comparison.

    JAX writes select(d != d, a + b, max(a, b) + log1p(exp(-|d|))) with d = a - b. With the derivatives of ties, 0.5 and 0, the
    second derivative would be 0 where a = b. NaN comes from a + b, so that the maximum needs none.
    """
    made = {o.first: o for o in block.operations if len(o.results) == 1}

    def by(name: str, value: int) -> Operation | None:
        return o if (o := made.get(value)) and o.name == f"stablehlo.{name}" else None

    @cache  # many selects may look at one constant, which may be large
    def same(value: int) -> Any:
        """What is the same for equal values: a constant written twice has two numbers."""
        for _ in range(_LONGEST):
            if (o := by("broadcast_in_dim", value)) is None:
                break
            value = o.operands[0]
        if o := by("constant", value):
            array, type_ = array_of(o.attributes["value"])
            return (array.tobytes(), type_.dtype) if array.size == 1 else value
        return value

    def chain(value: int) -> Iterator[Operation]:
        """The operation that makes a value, and those below it that take one operand that is no constant."""
        for _ in range(_LONGEST):
            if (o := made.get(value)) is None:
                return
            yield o
            varying = [v for v in o.operands if isinstance(same(v), int)] if len(o.operands) <= 2 else []
            if len(varying) != 1:
                return
            (value,) = varying

    choices: Choices = {}
    for o in block.operations:
        if o.name != "stablehlo.select" or not (differs := by("compare", o.operands[0])) or not (y := by("add", o.operands[2])):
            continue
        d = differs.operands[0]
        if not (difference := by("subtract", d)) or list(differs.operands) != [d, d]:
            continue
        for top, rest in (y.operands, reversed(y.operands)):
            highest = by("maximum", top)
            distance = next((o for o in chain(rest) if o.name == "stablehlo.abs" and o.operands[0] == d), None)
            if highest and distance:
                a, b = highest.operands
                orders = {(same(a), same(b)): (a, b), (same(b), same(a)): (b, a)}
                if order := orders.get(tuple(map(same, difference.operands))):
                    a, b = difference.operands
                    choices |= {highest.first: order, distance.first: (a, b)}
    return choices


def chosen(recording: Recording, operation: Operation, operands: Sequence[Term], a: Term, b: Term) -> Term:
    """A maximum of a and b, or the absolute value of a - b, by their order: in ties that of b and of b - a."""
    is_less = recording.emit("le", a, b)
    if operation.name == "stablehlo.maximum":
        return recording.emit("select_n", is_less, a, b)
    return recording.emit("select_n", is_less, operands[0], recording.emit("neg", operands[0]))


def by_jax(recording: Recording, function: Callable[..., Any], operands: Sequence[Term]) -> list[Term]:
    """The results of a function of JAX, whose equations are recorded. Raises TiduError where these are not read."""
    import jax

    from tidu_cli.adapters.jax.functions.function import from_jax

    types = [x.type for x in operands]
    scope: AbstractContextManager[None] = nullcontext()
    if has_open_size(types):
        from tidu_cli.adapters.jax.lowering.dims import scope_of
        from tidu_cli.graph.sizes.algebra import names_of

        scope = scope_of({name for t in types for n in t.shape for name in names_of(n)})
    with jax.enable_x64(True), scope:
        document = from_jax(function, *types, names=[f"x{k}" for k in range(len(types))])
    return inlined(recording, ClosedGraph.of(document.head), operands)
