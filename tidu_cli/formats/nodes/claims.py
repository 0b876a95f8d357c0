"""What readers verify of linear graphs: that they are linear in their inputs.

Each case of a linearized node says what of its operands must be structural zeros (`tidu_cli.rules.recording.linearity`); what a
linear graph reads of its own depends on its inputs, and nothing else does. Only nodes whose case asks for zeros are looked at one
by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate

from tidu_cli.errors import DocumentError
from tidu_cli.formats.nodes.plain import are_local, operands_of
from tidu_cli.graph.graph import CaseTable, Column, Document, Input, Place
from tidu_cli.graph.link import Application, Definitions
from tidu_cli.graph.own_tangents import not_linear, own_tangent_read
from tidu_cli.graph.passes import occurring
from tidu_cli.rules.recording.linearity import makes_zeros, not_zero
from tidu_cli.rules.vocabulary import PrimitiveSet

_PER_UNIT = "joins {} as tangents, and these are cotangents, which count per unit; write add_cotangents, of -y for x - y"

Due = Mapping[int, tuple[int, ...]]
"""By the numbers of cases, which of their operands must be structural zeros, where some must."""


def check_linear(inputs: Sequence[Input], code: Column[int], args: Column[int], cases: CaseTable) -> None:
    """Raises DocumentError that names a node of a linear graph that is primary, or whose mask does not say what is local.

    Also one that adds cotangents of different types as if they were tangents.
    """
    if not code:
        return
    masks = {number: cases[number].mask or () for number in occurring(code, len(cases))}
    if idle := {number for number, mask in masks.items() if not any(mask)}:
        node, case = next((node, cases[number]) for node, number in enumerate(code) if number in idle)
        has = "role; every node of a linear graph is linearized"
        if case.mask is not None:
            has = "active input; every node of a linear graph depends on a tangent"
        raise DocumentError(f"node {node} ({case.op}): has no {has}")
    if any(i.key.path and i.key.path[-1] < 0 for i in inputs):
        mixed = {number for number in masks if cases[number].op in ("add", "sub") and len({*cases[number].operands} - {None}) > 1}
        for node, number in enumerate(code if mixed else ()):
            if number in mixed:
                types = " and ".join(map(str, cases[number].operands))
                raise DocumentError(f"node {node} ({cases[number].op}): {_PER_UNIT.format(types)}")
    if are_local(code, args, masks):
        return
    starts = accumulate(map(cases.arity.__getitem__, code), initial=0)
    for node, (number, start) in enumerate(zip(code, starts, strict=False)):
        for k, active in enumerate(masks[number]):
            if active != (args[start + k] >= 0):
                what = "active, but no tangent reaches it" if active else "inactive, but it depends on the tangents"
                raise DocumentError(f"node {node} ({cases[number].op}): input {k} is {what}")


def check_own_tangents(document: Document) -> None:
    """Raises DocumentError that names a linear graph which other graphs or bindings make a nonlinear function of its inputs."""
    if wrong := own_tangent_read(document):
        raise DocumentError(f'{not_linear(*wrong)}; leave out "linear" and the roles of its nodes')


def check_zeros(document: Document, due: Due, primitives: PrimitiveSet) -> None:
    """Raises DocumentError that names a node of which an inactive operand must be a structural zero, and is not."""
    if not due:
        return
    zeros = _Zeros(document, primitives)
    for g, graph in enumerate(document.graphs):
        for node, k, argument in operands_of(graph.code, graph.args, graph.cases.arity, due):
            if graph.place(g, argument) not in zeros:
                raise DocumentError(f"{graph.describe(node)}: {not_zero(k, graph.case(node))}")


class _Zeros:
    """The values of a document that are structural zeros, looked up as they are asked for: each once, at any depth."""

    def __init__(self, document: Document, primitives: PrimitiveSet) -> None:
        self.graphs, self.definitions = document.graphs, Definitions(document)
        self.primitives = primitives
        self.makes_zeros = cache(lambda code: makes_zeros(primitives, document.cases[code]))
        self._known: dict[Place, bool] = {}

    def __contains__(self, place: Place) -> bool:
        known, pending = self._known, [place]
        while pending:
            operands = () if pending[-1] in known else self._operands(pending[-1])
            unknown = [v for v in operands or () if v not in known]
            if unknown:
                pending += unknown
            else:
                known.setdefault(pending.pop(), operands is not None and all(map(known.__getitem__, operands)))
        return known[place]

    def _operands(self, place: Place) -> Sequence[Place] | None:
        """What must be zeros for a value to be one; None if it is none in any case, as an input, and what nobody sees."""
        found = self.definitions[place]
        if not isinstance(found, Application):
            return None
        if self.primitives[found.case.op].evaluation.passes:  # a copy is delayed with what is no zero
            return [found.operands[found.slot]]
        return found.operands if self.makes_zeros(self.graphs[found.graph].code[found.node]) else None
