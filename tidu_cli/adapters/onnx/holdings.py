"""What a model holds, for people: operator sets, producer, operators, inputs, outputs and parameters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tidu_cli.adapters.onnx.choices import as_key
from tidu_cli.adapters.onnx.contents import nodes_within
from tidu_cli.adapters.onnx.loading import DTYPES, loaded
from tidu_cli.adapters.onnx.reading.calling import domain_name, operator_name
from tidu_cli.errors import counted
from tidu_cli.frozen import Frozen
from tidu_cli.graph.keys import key_to_json
from tidu_cli.graph.types import FLOATS, ITEMSIZE


class Numbers(Frozen, slots=False):
    """How many floats some tensors have."""

    numbers: int
    tensors: int
    n_bytes: int

    @classmethod
    def of(cls, tensors: Iterable[Any]) -> Numbers:
        """Those of tensors of floats among these."""
        known = [t for t in tensors if DTYPES.get(t.data_type) in FLOATS]
        sizes = [(math.prod(t.dims), ITEMSIZE[DTYPES[t.data_type]]) for t in known]
        return cls(sum(n for n, _ in sizes), len(known), sum(n * itemsize for n, itemsize in sizes))

    def __str__(self) -> str:
        return f"{counted(self.numbers, 'number')} in {counted(self.tensors, 'tensor')}, {counted(self.n_bytes, 'byte')}"


class Holdings(Frozen, slots=False):
    """`operators` with how many nodes are of each, those of functions and of graphs within nodes once; types of ports as text.

    `parameters` are initializers of floats, `constants` floats of Constant nodes, where some exporters have their parameters.
    """

    opsets: dict[str, int]
    producer: str
    operators: Counter[str]
    inputs: dict[str, str]
    outputs: dict[str, str]
    parameters: Numbers
    constants: Numbers

    def facts(self) -> dict[str, str]:
        """A line of each."""
        sets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in self.opsets.items())
        return {
            "opset": sets + (f", produced by {self.producer}" if self.producer else ""),
            "nodes": listed_counts(self.operators) or "none",
            "inputs": _ports(self.inputs),
            "outputs": _ports(self.outputs),
            "parameters": f"{self.parameters}{f'; in Constant nodes {self.constants}' if self.constants.tensors else ''}",
        }


def holdings(model: Any) -> Holdings:
    """What a model holds. It has been loaded, so that its graphs nest no deeper than is read."""
    graph, functions = model.graph, model.functions
    nodes = list(nodes_within([*graph.node, *(node for f in functions for node in f.node)]))
    constants = [a.t for node in nodes if node.op_type == "Constant" for a in node.attribute if a.HasField("t")]
    return Holdings(
        {domain_name(o.domain): o.version for o in model.opset_import},
        " ".join(filter(None, (model.producer_name, model.producer_version))),
        Counter(operator_name(node.domain, node.op_type) for node in nodes),
        *ports(graph),
        Numbers.of(graph.initializer),
        Numbers.of(constants),
    )


def as_plain(data: bytes) -> dict[str, Any]:
    """What is known of a model before it is read, much as a document of JSON has it: for those who ask for its names.

    Raises DocumentError.
    """
    graph = loaded(data).graph
    told = {
        kind: [{"key": key_to_json(as_key(name)), "type": type_} for name, type_ in named.items()]
        for kind, named in zip(("inputs", "outputs"), ports(graph), strict=True)
    }
    dimensions = [d.dim_param for i in graph.input for d in i.type.tensor_type.shape.dim if d.dim_param not in ("", "?")]
    values = [name for node in graph.node for name in node.output if name.isprintable() and name]
    return {"graphs": [{"name": graph.name, **told}], "dimensions": dimensions, "values": values}


def ports(graph: Any) -> tuple[dict[str, str], dict[str, str]]:
    """The types of inputs and of outputs, as text."""
    initializers = {t.name for t in graph.initializer}
    inputs = {i.name: _type(i.type) for i in graph.input if i.name not in initializers}
    return inputs, {o.name: _type(o.type) for o in graph.output}


def _type(proto: Any) -> str:
    kind = proto.WhichOneof("value")
    if kind != "tensor_type":
        return str(kind).removesuffix("_type").replace("_", " ") if kind else "of no type"
    tensor = proto.tensor_type
    sizes = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in tensor.shape.dim]
    return f"{DTYPES.get(tensor.elem_type, '?')}[{','.join(sizes) if tensor.HasField('shape') else '...'}]"


def listed_counts(counts: Counter[str]) -> str:
    """`3 Add, 1 Mul`, the most first."""
    return ", ".join(f"{n} {name}" for name, n in counts.most_common())


def _ports(ports: dict[str, str]) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in ports.items()) or "none"
