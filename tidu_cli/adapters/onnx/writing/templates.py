"""How the nodes of a case are written: by the lowerings of all primitives, as one operator or as the call of a model's function."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from tidu_cli.adapters.onnx.contents import nodes_within
from tidu_cli.adapters.onnx.loading import package
from tidu_cli.adapters.onnx.writing import arrays, bits, control_flow, elementwise, indexing, linear_algebra, reductions, windows
from tidu_cli.adapters.onnx.writing.arrays import aligned, aligned_of, is_wide
from tidu_cli.adapters.onnx.writing.control_flow import scan
from tidu_cli.adapters.onnx.writing.elementwise import chosen_by_products, converted_within
from tidu_cli.adapters.onnx.writing.lowering import Body, Lowering, Rule, Wanted, constant_nodes
from tidu_cli.adapters.onnx.writing.stages import Form
from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.graph import Case
from tidu_cli.rules.vocabulary import PrimitiveSet

LOWERINGS: Mapping[str, Rule] = {
    name: rule
    for family in (arrays, bits, control_flow, elementwise, indexing, linear_algebra, reductions, windows)
    for name, rule in family.LOWERINGS.items()
}
"""How primitives are written; `constant` is an initializer."""

DOMAIN = "tidu"
"""The domain of the model's functions."""

FORMS: Mapping[str, Rule] = {
    "aligned": aligned,
    "fits": converted_within,
    "by products": chosen_by_products,
    "kept": partial(chosen_by_products, zero=0),
    "others kept": partial(chosen_by_products, zero=1),
    "first": lambda low, x, y: low.emit("Identity", x),
    "second": lambda low, x, y: low.emit("Identity", y),
    "relu": lambda low, which, x, zero: low.emit("Relu", x),
    "unpadded": lambda low, x, zero: low.emit("Identity", x),
}
"""How a node may be written because of its neighbours: a broadcast of which only the axes are put in place, choices, and sums."""

ONE_READ: Mapping[str | Form, int] = {"relu": 1, "first": 0, "second": 1, "unpadded": 0}
"""Forms that read one operand, by its place: whoever reads the model has the others by their numbers."""


def _joined(form: str) -> Rule:
    """A sum of what is padded, as what is joined along an axis, in the order of operands or the other."""
    _, axis, *turned = form.split()
    return lambda low, x, y: low.emit("Concat", *((y, x) if turned else (x, y)), axis=int(axis))


class Template(Frozen, slots=False):
    """A node that is copied, with other names; and the constants and open sizes that it reads, by its names for them."""

    node: Any
    inputs: tuple[str, ...]
    constants: dict[str, Any]
    wanted: dict[Wanted, str] = field(default_factory=dict)
    within: Collection[str] = ()
    """The names that graphs within nodes of the called function read."""
    sources: Mapping[int, Collection[str]] = field(default_factory=dict)
    """By results: the names that onnxruntime may read instead, where it removes nodes of the called function."""

    @cached_property
    def places(self) -> list[int]:
        """For each operand its place among the inputs of the node, 0 for those that it does not read."""
        names = list(self.node.input)
        return [names.index(name) if name else 0 for name in self.inputs]

    def add(self, body: Body, inputs: Sequence[str], outputs: Sequence[str]) -> Any:
        """Add the node with these names to a body. Returns the node."""
        names = dict(zip(self.inputs, inputs, strict=True))
        names.update((name, body.constant(array)) for name, array in self.constants.items())
        names.update((name, body.measured(wanted)) for wanted, name in self.wanted.items())
        apart = body.apart(names[name] for name in self.within)
        names.update((name, apart.get(names[name], names[name])) for name in self.within)
        node = package().NodeProto()
        node.CopyFrom(self.node)
        del node.input[:], node.output[:]
        node.input.extend([names[name] if name else "" for name in self.node.input])
        node.output.extend(outputs)
        body.nodes.append(node)
        body.note(node.op_type, node.input, node.output)
        for k, of in self.sources.items():
            body.note("Identity", [names[name] for name in of], outputs[k : k + 1])
        return node


class Templates:
    """The templates of cases, and the functions that they call."""

    def __init__(self, opset: int, primitives: PrimitiveSet) -> None:
        self.opset = opset
        self.primitives = primitives
        self.functions: list[Any] = []
        self._made: dict[tuple[int, str | Form], Template] = {}
        self._numbers: Counter[str] = Counter()

    def of(self, number: int, case: Case, form: str | Form = "") -> Template:
        """The template of a case, by its number, in one of FORMS or as its lowering has it. Raises NoMeaningError."""
        key = number, form
        if key not in self._made:
            self._made[key] = self._template(case, form)
        return self._made[key]

    def _template(self, case: Case, form: str | Form) -> Template:
        body, inputs = Body(self.opset, "t"), [f"i{k}" for k in range(len(case.operands))]
        low = Lowering(body, case, LOWERINGS, self.primitives)
        if isinstance(form, Form):
            results = scan(low, *inputs, form=form)
        else:
            rule = _joined(form) if form.startswith("joined") else FORMS.get(form)
            results = [str(rule(low, *inputs))] if rule else low.written(inputs)
        made = {name for node in body.nodes for name in node.output}
        if form in ONE_READ:
            read = ONE_READ[form]
            return Template(body.nodes[0], tuple(name if k == read else "" for k, name in enumerate(inputs)), {})
        if len(body.nodes) == 1 and _stands_alone(body.nodes[0], inputs, results):
            return Template(body.nodes[0], tuple(inputs), body.constants, body.wanted)
        results = [
            body.emit("Identity", name) if name not in made or name in results[:k] else name for k, name in enumerate(results)
        ]
        return self._call(case, body, inputs, results)

    def _call(self, case: Case, body: Body, inputs: list[str], results: list[str]) -> Template:
        helper, op = package().helper, re.sub(r"\W", "_", case.op)
        name = f"{op}_{self._numbers[op]}"
        self._numbers[op] += 1
        nodes = [*constant_nodes(body.constants), *body.nodes]
        opsets = [helper.make_opsetid("", self.opset)]
        read = [*inputs, *body.wanted.values()]
        self.functions.append(helper.make_function(DOMAIN, name, read, results, nodes, opsets))
        node = helper.make_node(name, read, results, domain=DOMAIN)
        within = {x for n in body.nodes for inner in [*nodes_within([n])][1:] for x in inner.input}
        sources = {k: body.sources[y].intersection(read) for k, y in enumerate(results) if y in body.sources}
        return Template(node, tuple(inputs), {}, body.wanted, within.intersection(read), sources)


def broadcast_form(case: Case) -> str:
    """How a broadcast is written that operators would do themselves."""
    shape = case.results[0].shape  # type: ignore[union-attr]
    return "" if is_wide(shape, aligned_of(case)) else "aligned"


def operators(case: Case, opset: int, primitives: PrimitiveSet) -> list[str]:
    """The operators that a node of a case is written with, one if it stands for itself. Raises NoMeaningError, which says why not.

    A constant is an initializer, and has none.
    """
    if case.op == "constant":
        return []
    templates = Templates(opset, primitives)
    node = templates.of(0, case).node
    written = templates.functions[0].node if templates.functions else [node]
    return [n.op_type for n in written if n.op_type != "Constant"]


def _stands_alone(node: Any, inputs: Sequence[str], results: Sequence[str]) -> bool:
    """Whether a node can be copied: it reads all operands, gives the results, and has no graph, which has names, too."""
    return list(node.output) == results and set(inputs) <= set(node.input) and not any(a.HasField("g") for a in node.attribute)
