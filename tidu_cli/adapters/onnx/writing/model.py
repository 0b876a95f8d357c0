"""A document as a model: all graphs in one, with what makes them a document in `metadata_props`.

Inputs and outputs have the texts of their keys as names. Outputs of graphs before the head whose keys are taken have the name of
their graph before them, and those whose keys are inputs', too, end in `:out`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from tidu_cli.adapters.onnx.loading import package
from tidu_cli.adapters.onnx.writing.arrays import aligned_of
from tidu_cli.adapters.onnx.writing.elementwise import BROADCASTING, is_one_operator
from tidu_cli.adapters.onnx.writing.lowering import Body, NoMeaningError, Wanted, tensor, tensor_type, value_info
from tidu_cli.adapters.onnx.writing.stages import Form
from tidu_cli.adapters.onnx.writing.templates import DOMAIN, ONE_READ, Template, Templates, broadcast_form
from tidu_cli.errors import TypeTextError, UndecidedSizeError
from tidu_cli.formats.nodes.listed import GraphWriter
from tidu_cli.formats.write import bindings, heading
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Case, Document, Externals, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.sizes.open import larger
from tidu_cli.lax.arrays.structural import literal_array
from tidu_cli.lax.vocabulary import vocabulary

OPSET, OLDEST_OPSET, IR_VERSION = 21, 18, 10
"""The operator set of models that are written, and the oldest one; the oldest version of the format that has `metadata_props`."""

MARK = "tidu"
"""Under which `metadata_props` have what makes a document of a model."""

NAMELESS = "(nameless)"
"""The name of an input or output whose key is empty."""

MOST_BYTES = 2**31 - 2**20
"""Models of more bytes than protobuf takes have their constants in another file."""


def onnx_model(document: Document, opset: int = OPSET) -> Any:
    """The ModelProto of a document. Raises NoMeaningError, which names graph and node, for what ONNX has not got."""
    if opset < OLDEST_OPSET:
        raise NoMeaningError(f"operator sets from {OLDEST_OPSET} on are written, and {opset} is older")
    newest = package().defs.onnx_opset_version()
    if opset > newest:
        raise NoMeaningError(f"the onnx that is installed knows operator sets up to {newest}, and not {opset}")
    return ModelWriter(document, opset).model()


def onnx_bytes(document: Document, opset: int = OPSET) -> bytes:
    """The bytes of that model, the same for the same document. Raises likewise, and for what is too large for one file."""
    model = onnx_model(document, opset)
    if sum(len(t.raw_data) for t in model.graph.initializer) > MOST_BYTES:
        raise NoMeaningError("its constants have more than the 2 GiB that one file of ONNX can hold; give -o FILE.onnx")
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def onnx_files(document: Document, location: str, opset: int = OPSET, most: int = MOST_BYTES) -> tuple[bytes, bytes]:
    """The bytes of the model, and those of the file `location` beside it, which has large constants, if need be."""
    return files_of(onnx_model(document, opset), location, most)


def files_of(model: Any, location: str, most: int = MOST_BYTES) -> tuple[bytes, bytes]:
    """Likewise, of a ModelProto, which is changed."""
    beside = bytearray()
    if sum(len(t.raw_data) for t in model.graph.initializer) > most:
        for t in model.graph.initializer:
            if len(t.raw_data) >= 1024:
                place = {"location": location, "offset": str(len(beside)), "length": str(len(t.raw_data))}
                beside += t.raw_data
                t.ClearField("raw_data")
                t.data_location = package().TensorProto.EXTERNAL
                for key, value in place.items():
                    t.external_data.add(key=key, value=value)
    return model.SerializeToString(deterministic=True), bytes(beside)


class ModelWriter:
    """A model in the making."""

    def __init__(self, document: Document, opset: int) -> None:
        self.document = document
        self.opset = opset
        self.templates = Templates(opset, vocabulary(document.cases))
        self.inputs = {i.key: str(i.key) or NAMELESS for i in document.free_inputs}
        self.output_names = list(_output_names(document, set(self.inputs.values())))
        prefix = "tidu/"
        while any(name.startswith(prefix) for name in (*self.inputs.values(), *self.output_names)):
            prefix = f"_{prefix}"
        self.body = Body(opset, prefix, measured=self._measured)
        self.sizes = Body(opset, prefix, self.body.numbers)
        self.sizes.sources = self.body.sources
        """What computes open sizes, before all else."""
        self.measuring: Any = None
        self.initializers: dict[str, Any] = {}
        self.body.fixed.update(dict.fromkeys(self.inputs.values()))
        self.names: list[list[str]] = []
        """The names of the values of each graph."""
        self.claims: dict[int, str] = {}
        self.places: dict[str, tuple[int, int]] = {}
        """Where the first value of each name is, by which readers find it again."""

    def model(self) -> Any:
        """The ModelProto."""
        names = iter(self.output_names)
        outline, outputs = [], []
        for number, graph in enumerate(self.document.graphs):
            own = [next(names) for _ in graph.outputs]
            try:
                outline.append(self._graph(number, graph, own))
            except NoMeaningError as error:
                raise NoMeaningError(f"graph '{graph.name}'{error}") from None
            outputs += [value_info(name, o.type) for name, o in zip(own, graph.outputs, strict=True)]
        helper = package().helper
        opsets = [helper.make_opsetid("", self.opset), *([helper.make_opsetid(DOMAIN, 1)] if self.templates.functions else [])]
        constants = {**self.initializers, **self.body.constants}
        read = {name for node in (*self.sizes.nodes, *self.body.nodes) for name in node.input}
        _ = [self.body.copied(name) for name in constants if name not in read]  # onnxruntime warns of constants that nobody reads
        model = helper.make_model(
            helper.make_graph(
                [*self.sizes.nodes, *self.body.nodes],
                self.document.head.name or "graph",
                [value_info(name, self.document.inputs[key].type) for key, name in self.inputs.items()],
                outputs,
                [tensor(name, array) for name, array in constants.items()],
            ),
            producer_name="tidu",
            functions=self.templates.functions,
            opset_imports=opsets,
            ir_version=max(IR_VERSION, helper.find_min_ir_version_for(opsets[:1])),
        )
        model.metadata_props.add(key=MARK, value=_text({**heading(self.document), "graphs": outline, **bindings(self.document)}))
        return model

    def _graph(self, number: int, graph: Graph, outputs: Sequence[str]) -> dict[str, object]:
        """Write the nodes of a graph. Returns what else makes the graph, its inputs and outputs as in a document."""
        values = [self.inputs.get(i.key) or self._bound(i.key) for i in graph.inputs]
        self.names.append(values)
        given = set(values)
        due: dict[int, str] = {}
        for name, output in zip(outputs, graph.outputs, strict=True):
            if output.value is not None and output.value >= len(graph.inputs):
                due.setdefault(output.value, name)
        forms, behind, onto = _forms(self.document, number)
        copied, late = _again(self.document, number, forms)
        copies: dict[int, str] = {}
        """By values: what else has them."""
        constants: dict[str, str] = {}
        waiting: dict[int, Callable[[str], None]] = {}
        for node, (code, args, first, end) in enumerate(forwards(graph, graph.args)):
            case = graph.cases[code]
            try:
                if case.op == "constant":
                    constants[str(node)] = self._constant(case)
                    values.append(constants[str(node)])
                    continue
                template = self.templates.of(code, case, forms.get(node, ""))
                _ = [self._measured(wanted) for wanted in template.wanted]  # of which names may be refused
                operands = [self._name(graph, number, a) for a in (args if node not in onto else [onto[node], *args[1:]])]
                if node in late:
                    operands = [copies.get(a) or name for a, name in zip(args, operands, strict=True)]
            except (NoMeaningError, UndecidedSizeError) as error:
                raise NoMeaningError(f", node {node} ({case.op}): {error}") from None
            results = [due.pop(v) if v in due else self.body.name() for v in range(first, end)]
            values += results
            if node in copied:
                copies[first] = self._copy(template, case, [copies.get(a, "") for a in args], operands, copied[node])
            if node in behind:
                waiting[behind[node]] = partial(self._compare, template, case, args, operands, results)
                continue
            proto = template.add(self.body, operands, results)
            elsewhere: dict[str, Any] = {
                str(k): place
                for k, a in enumerate(args)
                if a < 0 and ((place := graph.place(number, a)) != self.places[operands[k]] or operands[k] in given)
            }
            if (read := ONE_READ.get(forms.get(node, ""))) is not None:
                elsewhere.update({str(k): a for k, a in enumerate(args) if k != read and str(k) not in elsewhere})
            if node in onto:
                elsewhere["0"] = args[0]
            for k, a in enumerate(args if template.within else ()):
                if proto.input[template.places[k]] != operands[k]:  # graphs within nodes read what is the same
                    elsewhere[str(k)] = a if a >= 0 else graph.place(number, a)
            if node in late:
                elsewhere.update({str(k): a for k, a in enumerate(args) if a in copies})
            claim = _claim(case, template.places, elsewhere) if elsewhere else self._claim(case, template)
            proto.metadata_props.add(key=MARK, value=claim)
            if node in waiting:
                waiting[node](*results)
        for v, name in enumerate(values):
            self.places.setdefault(name, (number, v))
        for name, output in zip(outputs, graph.outputs, strict=True):
            try:
                self._put_out(name, graph, number, output)
            except NoMeaningError as error:
                raise NoMeaningError(f", output '{output.key}': {error}") from None
        writer = GraphWriter(self.document, graph, binary=False, types=False, listed=True)
        written = {**writer.head(), "inputs": writer.inputs(), "outputs": writer.outputs(), "nodes": graph.n_nodes}
        written["constants"] = constants
        written["names"] = {str(k): values[k] for k, i in enumerate(graph.inputs) if values[k] != str(i.key)}
        if behind:
            written["behind"] = {str(relu): node for node, relu in behind.items()}
        if graph.node_meta:
            written["node_meta"] = {str(node): meta for node, meta in sorted(graph.node_meta.items())}
        return written

    def _measured(self, wanted: Wanted) -> str:
        """What computes open sizes. Raises DocumentError for a name that no input says."""
        if self.measuring is None:
            from tidu_cli.adapters.onnx.writing.measuring import Measuring

            types = {name: self.document.inputs[key].type for key, name in self.inputs.items()}
            self.measuring = Measuring(types, self.sizes, self.body)
        return self.measuring.name_of(wanted)  # type: ignore[no-any-return]

    def _copy(self, template: Template, case: Case, copies: Sequence[str], operands: Sequence[str], small: int) -> str:
        """Compute a value again, of copies where there are some. It makes no claim.

        onnxruntime computes equal values once. So the first of several copies reads its small operand with more axes, or through an
        operation that changes nothing. It stands here, and not before its reader: what stands last is computed first.
        """
        names = [copy or name for copy, name in zip(copies, operands, strict=True)]
        if small >= 0:
            constant = self.initializers.get(names[small], self.body.constants.get(names[small]))
            n_axes = len(case.results[0].shape)  # type: ignore[union-attr]
            if constant is not None and constant.ndim < n_axes:
                names[small] = self.body.constant(constant.reshape((1,) * (n_axes - constant.ndim) + constant.shape))
            else:
                names[small] = self.body.emit("Max", names[small])
        copy = self.body.name()
        template.add(self.body, names, [copy])
        return copy

    def _compare(
        self, template: Template, case: Case, args: Sequence[int], operands: list[str], results: list[str], relu: str
    ) -> None:
        """Compare what Relu gives, instead of what it takes."""
        proto = template.add(self.body, [relu, *operands[1:]], results)
        proto.metadata_props.add(key=MARK, value=_claim(case, template.places, {"0": args[0]}))

    def _claim(self, case: Case, template: Template) -> str:
        """What nodes of a template claim, which is the same for most."""
        key = id(template)  # which is kept for as long as this
        if key not in self.claims:
            self.claims[key] = _claim(case, template.places, {})
        return self.claims[key]

    def _bound(self, key: Key) -> str:
        """A name of its own for the value that an input is bound to."""
        graph, value = self.document.bound[key]
        return self.body.copied(self.names[graph][value])

    def _constant(self, case: Case) -> str:
        literal = case.attrs.value  # type: ignore[attr-defined]
        tensor_type(literal.type)
        name = self.body.name()
        try:
            self.initializers[name] = self.body.fixed[name] = literal_array(np, literal)
        except TypeTextError as error:
            raise NoMeaningError(str(error)) from None
        return name

    def _name(self, graph: Graph, number: int, argument: int) -> str:
        if argument >= 0:
            return self.names[number][argument]
        g, v = graph.place(number, argument)
        if g == Externals.DETACHED:
            raise NoMeaningError("reads a detached value, which the document does not define; resolve it first")
        return self.names[g][v]

    def _put_out(self, name: str, graph: Graph, number: int, output: Any) -> None:
        if output.value is None:
            type_ = tensor_type(output.type)
            operands = [self.body.constant(0, type_.dtype), self.body.ints(type_.shape)]
            self.body.nodes.append(package().helper.make_node("Expand", operands, [name]))
            return
        source = self._name(graph, number, output.value)
        if source != name:
            self.body.copied(source, name)


def _output_names(document: Document, inputs: set[str]) -> Iterator[str]:
    """The names of all outputs, graph by graph; those of the head are chosen first."""
    taken = set(inputs)
    by_number: dict[int, list[str]] = {}
    last = len(document.graphs) - 1
    for number in (last, *range(last)):
        graph, names = document.graphs[number], []
        for output in graph.outputs:
            text = str(output.key) or NAMELESS
            name = f"{text}:out" if text in inputs else text
            if name in taken:
                name = f"{graph.name}:{text}"
            while name in taken:
                name = f"{name}'"
            taken.add(name)
            names.append(name)
        by_number[number] = names
    for number in range(last + 1):
        yield from by_number[number]


def _claim(case: Case, places: Sequence[int], elsewhere: Mapping[str, Any]) -> str:
    """What node a node of ONNX stands for, and where among its inputs the operands are.

    `elsewhere` are operands that the node has of another graph, though its own has them, too: inputs.
    """
    role = {} if case.mask is None else {"linearized": {"active_mask": list(case.mask)}}
    claim = {"op": case.op, "attrs": case.attrs.to_data(binary=False), "role": role, "at": places, "elsewhere": elsewhere}
    return _text({name: value for name, value in claim.items() if value or name == "at"})


def _text(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _forms(document: Document, number: int) -> tuple[Mapping[int, str | Form], Mapping[int, int], Mapping[int, int]]:
    """The nodes of a graph that are written in a form that their neighbours allow, those that are written behind another, and those
    that add to another value than zeros."""
    graph = document.graphs[number]
    forms: dict[int, str | Form] = {node: broadcast_form(graph.cases[graph.code[node]]) for node in _aligned(document, number)}
    if {case.op for case in graph.cases.cases}.isdisjoint(("convert_element_type", "pad", "scan", "scatter-add", "select_n")):
        return forms, {}, {}
    from tidu_cli.adapters.onnx.writing.choosing import additions, by_bounds, choices, joinings

    kept = _kept(document, number)
    (chosen, behind), (sums, onto) = choices(graph), additions(graph, kept)
    return {**forms, **chosen, **sums, **joinings(graph, kept), **by_bounds(graph, kept)}, behind, onto


def _again(document: Document, number: int, forms: Mapping[int, object]) -> tuple[Mapping[int, int], Collection[int]]:
    """The nodes of a derivative that are computed twice, and those that read the copies."""
    graph = document.graphs[number]
    if graph.external or not any(case.mask for case in graph.cases.cases):
        return {}, ()
    from tidu_cli.adapters.onnx.writing.choosing import computed_again

    return computed_again(graph, _kept(document, number), forms)


def _aligned(document: Document, number: int) -> set[int]:
    """The broadcasts that need not be written, as all who read them broadcast operands that have all of the shape together."""
    graph = document.graphs[number]
    nodes = [(graph.cases[code], args, first) for code, args, first, _ in forwards(graph, graph.args)]
    made = {first: node for node, (case, _, first) in enumerate(nodes) if case.op == "broadcast_in_dim"}
    lazy = {*made.values()}
    for case, args, _ in nodes:
        makers = [nodes[made[a]][0] if a in made else None for a in args] if lazy else []
        if any(makers) and not (case.op in BROADCASTING and is_one_operator(case) and _is_whole(case, makers)):
            lazy.difference_update(made[a] for a in args if a in made)
    return lazy - {made[v] for v in _kept(document, number) if v in made}


def _kept(document: Document, number: int) -> set[int]:
    """The values of a graph that others read: other graphs, and whoever reads outputs."""
    graph = document.graphs[number]
    return (
        {v for other in document.graphs for g, v in other.external if g == number}
        | {o.value for o in graph.outputs if o.value is not None}
        | {b.value for b in document.bindings if b.graph == number}
    )


def _is_whole(case: Case, makers: Sequence[Case | None]) -> bool:
    """Whether operands, some of which broadcasts make, have the shape of the result together without these."""
    types: Any = zip(case.operands, makers, strict=True)
    due = [[*t.shape] if made is None else aligned_of(made) for t, made in types][case.op == "select_n" :]
    whole: Any = case.results[0]
    return [reduce(larger, sizes) for sizes in zip(*due, strict=True)] == [*whole.shape]
