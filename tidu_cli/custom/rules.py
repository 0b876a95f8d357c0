"""The rules of own primitives, by the graphs of their definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tidu_cli.custom import bodies
from tidu_cli.custom.attrs import OwnAttrs, attrs_class
from tidu_cli.custom.bodies import Body
from tidu_cli.custom.definitions import OpDefinition
from tidu_cli.custom.linearity import require_linear
from tidu_cli.custom.patterns import TensorPattern, completed
from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.graph.graph import CaseTable
from tidu_cli.graph.types import TensorType, Type, tangent_type
from tidu_cli.rules.contract import JVP, Batching, Kernel, Primitive, Transposition, ValueTypes
from tidu_cli.rules.families import primitive
from tidu_cli.rules.recording import HIDDEN, Term, Trace
from tidu_cli.rules.vocabulary import PrimitiveSet

JVP_SUFFIX = ".jvp"
"""What follows an op's name in that of its derivative, where that has no graph of its own."""


def own_primitives(definition: OpDefinition, whole: Callable[[], PrimitiveSet]) -> list[Primitive]:
    """The primitives of a definition: the op, and its derivative if only `backward` says what that is.

    `whole` gives the set of which they will be part.
    """
    op = _Op(definition, whole)
    found = [op.primitive()]
    if "backward" in definition.graphs and "jvp" not in definition.graphs:
        found.append(_Derivative(op).primitive())
    return found


class _Op:
    """The rules of an own primitive."""

    def __init__(self, definition: OpDefinition, whole: Callable[[], PrimitiveSet]) -> None:
        self.definition = definition
        self.whole = whole
        self._flops: dict[Body, int] = {}

    def primitive(self) -> Primitive:
        definition = self.definition
        linear = "transpose" in definition.graphs or "backward" not in definition.graphs
        return primitive(
            definition.name,
            len(definition.inputs),
            self.types,  # type: ignore[arg-type]  # of records, too
            self.kernel,
            jvp=self.jvp,
            transpose=self.transpose if linear else None,
            attrs=attrs_class(definition.name, definition.attrs),
            hidden=self.hidden,
            n_results=lambda attrs, n_operands: len(definition.outputs),
            batch=lambda node: self.batched(self.forward(node.attrs, node.types), node),
            inlined=self.inlined,
            linear_in=lambda n_operands: definition.linear_in,
            integers="exact",
            records=True,
            flops=lambda attrs, operands, results: self.flops(self.forward(attrs, operands)),
            formula=f"{definition.name}({', '.join(p.name for p in definition.inputs)})",
            summary="defined in the document",
        )

    def hidden(self, attrs: OwnAttrs, operands: Sequence[Type | None], declared: ValueTypes | None) -> Sequence[Type | None]:
        patterns = [p.pattern for p in self.definition.outputs]
        results = zip(patterns, declared, strict=True) if declared is not None and len(declared) == len(patterns) else ()
        return completed([p.pattern for p in self.definition.inputs], operands, [*results])

    def forward(self, attrs: OwnAttrs, operands: ValueTypes) -> Body:
        return self.definition.body("forward", self.whole(), attrs, _all_known(operands))

    def derivative(self, kind: str, attrs: OwnAttrs, operands: ValueTypes) -> Body:
        """The graph `jvp`, `backward` or `transpose`. Raises MissingRuleError if it is wrong, or not linear as it must be."""
        try:
            return self.definition.body(kind, self.whole(), attrs, _all_known(operands))
        except TypeRuleError as error:
            raise MissingRuleError(str(error)) from None

    def types(self, attrs: OwnAttrs, operands: ValueTypes) -> ValueTypes:
        return tuple(t for t in self.forward(attrs, operands).result_types if t is not None)

    def kernel(self, np: Any, attrs: OwnAttrs, operands: ValueTypes, results: ValueTypes) -> Kernel:
        return bodies.kernel(np, self.forward(attrs, operands), self.whole())

    def flops(self, body: Body) -> int:
        if body not in self._flops:  # once, since ops made of ops made of ops may have many nodes
            self._flops[body] = bodies.flops(body, self.whole())
        return self._flops[body]

    def batched(self, body: Body, node: Batching) -> Sequence[Term]:
        return bodies.batched(node.operands[0].trace, body, node.operands, node.batched, node.size)

    def inlined(self, attrs: OwnAttrs, operands: Sequence[Term]) -> Sequence[Term]:
        body = self.forward(attrs, tuple(t.value_type for t in operands))
        if not any(t.linear for t in operands):
            return _spliced(body, operands)
        # In the nodes that rules emit: those can be transposed.
        order, moved = bodies.residual_first(body, [t.linear for t in operands])
        residual = [operands[k] for k in order if not operands[k].linear]
        tangents = [operands[k] for k in order if operands[k].linear]
        require_linear(self.whole(), moved, len(residual), "active inputs")
        found = bodies.spliced_linearly(operands[0].trace, moved, residual, tangents)
        return [
            bodies.zeros(operands[0].trace, t) if r is None else r
            for r, t in zip(found, self.types(attrs, body.sources), strict=True)
        ]

    def jvp(self, node: JVP) -> Sequence[Term | None]:
        trace, graphs = next(t.trace for t in node.tangents if t is not None), self.definition.graphs
        operands = tuple(t.value_type for t in node.operands)
        if "jvp" in graphs:
            body = self.derivative("jvp", node.attrs, operands)
            return bodies.spliced_linearly(trace, body, [*node.operands, *node.results], node.tangents)
        if "backward" in graphs:
            active = [t is not None for t in node.tangents]
            attrs = node.attrs.values | {"active": active}
            tangents = [t for t in node.tangents if t is not None]
            return trace.emit_all(self.definition.name + JVP_SUFFIX, *node.operands, *node.results, *tangents, **attrs)
        mixed = [x if t is None else t for x, t in zip(node.operands, node.tangents, strict=True)]
        is_linear = "transpose" in graphs and [t is not None for t in node.tangents] == list(self.definition.linear_in)
        # The op itself takes the tangents only where they are of the type of its inputs, as those of integers are not.
        if is_linear and tuple(t.value_type for t in mixed) == operands:
            self.derivative("transpose", node.attrs, operands)  # whether it is linear
            return trace.apply(self.definition.name, node.attrs, mixed)
        _, tangents_out = bodies.pushed_forward(trace, self.forward(node.attrs, operands), node.operands, node.tangents)
        return tangents_out

    def transpose(self, node: Transposition) -> Sequence[Term | None]:
        trace = next(t.trace for t in node.cotangents if t is not None)
        if node.active == self.definition.linear_in and "transpose" in self.definition.graphs:
            body = self.derivative("transpose", node.attrs, node.types)
            found = iter(bodies.spliced_linearly(trace, body, [t for t in node.operands if t is not None], node.cotangents))
            return [next(found) if a else None for a in node.active]
        forward = self.forward(node.attrs, node.types)
        order, body = bodies.residual_first(forward, node.active)
        residual = [t for t in (node.operands[k] for k in order) if t is not None]
        require_linear(self.whole(), body, len(residual), "active inputs")
        cotangents = bodies.transposed(trace, body, residual, [True] * (len(order) - len(residual)), node.cotangents)
        by_operand = dict(zip(order[len(residual) :], cotangents, strict=True))
        return [by_operand.get(k) for k in range(len(order))]


class _Derivative:
    """The rules of the derivative of an op that has `backward` only: the transpose of that, which is linear in its cotangents.

    Its operands are the op's inputs and outputs, and the tangents of those inputs that its attr `active` says.
    """

    def __init__(self, op: _Op) -> None:
        self.op = op
        self._bodies: dict[object, Body] = {}

    def primitive(self) -> Primitive:
        name = self.op.definition.name + JVP_SUFFIX
        return primitive(
            name,
            None,
            self.types,  # type: ignore[arg-type]  # of records, too
            lambda np, attrs, operands, results: bodies.kernel(np, self.body(attrs, operands), self.op.whole()),
            jvp=self.jvp,
            transpose=self.transpose,
            attrs=attrs_class(name, {**self.op.definition.attrs, "active": []}),
            hidden=self.hidden,
            n_results=lambda attrs, n_operands: len(self.op.definition.outputs),
            batch=lambda node: self.op.batched(self.body(node.attrs, node.types), node),
            integers="exact",
            records=True,
            inlined=lambda attrs, operands: _spliced(self.body(attrs, tuple(t.value_type for t in operands)), operands),
            linear_in=lambda n_operands: (False,) * self.n_primal + (True,) * (n_operands - self.n_primal),
            flops=lambda attrs, operands, results: self.op.flops(self.body(attrs, operands)),
            formula=f"the derivative of {self.op.definition.name}",
            summary="the transpose of its backward graph",
        )

    @property
    def n_primal(self) -> int:
        return len(self.op.definition.inputs) + len(self.op.definition.outputs)

    def split(self, attrs: OwnAttrs) -> tuple[OwnAttrs, list[bool]]:
        values = dict(attrs.values)
        active = values.pop("active")
        n = len(self.op.definition.inputs)
        if not isinstance(active, list) or len(active) != n or not all(isinstance(a, bool) for a in active) or not any(active):
            raise TypeRuleError(f"attr 'active': it says of each of the {n} inputs whether it has a tangent")
        return OwnAttrs.of(values), active

    def hidden(self, attrs: OwnAttrs, operands: Sequence[Type | None], declared: ValueTypes | None) -> Sequence[Type | None]:
        """By the patterns of the op. Those of tangents have their shapes, and another dtype where it is of integers, or any."""
        definition = self.op.definition
        inputs, outputs = ([p.pattern for p in ports] for ports in (definition.inputs, definition.outputs))
        _, active = self.split(attrs)
        moving = [pattern for pattern, a in zip(inputs, active, strict=True) if a]
        if len(operands) != self.n_primal + len(moving) or (declared is not None and len(declared) != len(outputs)):
            return operands  # which is refused where types are checked
        tangents = zip([*moving, *(outputs if declared else ())], [*operands[self.n_primal :], *(declared or ())], strict=True)
        shapes = [(replace(p, dtype=t.dtype), t) for p, t in tangents if isinstance(p, TensorPattern) and isinstance(t, TensorType)]
        return [*completed([*inputs, *outputs], operands[: self.n_primal], shapes), *operands[self.n_primal :]]

    def types(self, attrs: OwnAttrs, operands: ValueTypes) -> ValueTypes:
        return tuple(t for t in self.body(attrs, operands).result_types if t is not None)

    def body(self, attrs: OwnAttrs, operands: ValueTypes) -> Body:
        identity = attrs, operands
        if identity not in self._bodies:
            _all_known(operands)
            self._bodies[identity] = self._transposed_backward(attrs, operands)
        return self._bodies[identity]

    def _transposed_backward(self, attrs: OwnAttrs, operands: ValueTypes) -> Body:
        own, active = self.split(attrs)
        inputs = operands[: len(self.op.definition.inputs)]
        due = [tangent_type(t) for t, a in zip(inputs, active, strict=True) if a]
        if len(operands) != self.n_primal + len(due) or list(operands[self.n_primal :]) != due:
            tangents_due = ", ".join(map(str, due))
            raise TypeRuleError(f"takes the inputs and outputs of {self.op.definition.name}, and tangents {tangents_due}")
        backward = self.op.derivative("backward", own, inputs)
        trace = Trace(self.op.whole(), CaseTable())
        primal = [trace.source(t, linear=False) for t in operands[: self.n_primal]]
        tangents = iter([trace.source(t, linear=False) for t in due])
        given = [next(tangents) if a else None for a in active]
        n_outputs = len(self.op.definition.outputs)
        found = bodies.transposed(trace, backward, primal, [True] * n_outputs, given)
        outputs = operands[len(inputs) : self.n_primal]
        dense = [bodies.zeros(trace, tangent_type(t)) if r is None else r for r, t in zip(found, outputs, strict=True)]
        return bodies.recorded(trace, operands, dense)

    def jvp(self, node: JVP) -> Sequence[Term | None]:
        trace = next(t.trace for t in node.tangents if t is not None)
        if not any(t is not None for t in node.tangents[: self.n_primal]) and all(
            t is not None for t in node.tangents[self.n_primal :]
        ):
            moved = [*node.operands[: self.n_primal], *(t for t in node.tangents[self.n_primal :] if t is not None)]
            return trace.apply(self.op.definition.name + JVP_SUFFIX, node.attrs, moved)
        body = self.body(node.attrs, tuple(t.value_type for t in node.operands))
        _, tangents = bodies.pushed_forward(trace, body, node.operands, node.tangents)
        return tangents

    def transpose(self, node: Transposition) -> Sequence[Term | None]:
        trace = next(t.trace for t in node.cotangents if t is not None)
        own, active = self.split(node.attrs)
        n_linear = len(node.active) - self.n_primal
        if node.active != (False,) * self.n_primal + (True,) * n_linear:
            name = self.op.definition.name + JVP_SUFFIX
            raise MissingRuleError(f"missing transpose rule for {name} with active inputs {list(node.active)}")
        backward = self.op.derivative("backward", own, node.types[: len(self.op.definition.inputs)])
        primal = [t for t in node.operands if t is not None]
        found = bodies.spliced_linearly(trace, backward, primal, node.cotangents)
        return [*[None] * self.n_primal, *(c for c, a in zip(found, active, strict=True) if a)]


def _all_known(operands: Sequence[Type | None]) -> ValueTypes:
    known = tuple(t for t in operands if t is not None)
    if len(known) < len(operands):
        raise MissingRuleError(HIDDEN)
    return known


def _spliced(body: Body, operands: Sequence[Term]) -> list[Term]:
    found = bodies.spliced(operands[0].trace, body, operands)
    return [t for t in found if t is not None]  # none is: forward graphs give no null, and derivatives write zeros out
