"""What `tidu check` says of a model of ONNX: what it holds, where derivatives end, and whether they and its values are right.

What it holds is its operator sets, producer, operators, inputs, outputs and parameters. Its values are compared with those that
onnxruntime computes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from tidu_cli.adapters.onnx.contents import Choices, as_key, nodes_within
from tidu_cli.adapters.onnx.loading import DTYPES, loaded
from tidu_cli.adapters.onnx.read import opened
from tidu_cli.adapters.onnx.reading.calling import domain_name, operator_name
from tidu_cli.checking.numeric.trials import VERIFIED, Agreement, agreement, at_sizes, draw
from tidu_cli.errors import TiduError, counted
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key, key_to_json
from tidu_cli.graph.types import FLOATS, ITEMSIZE, TensorType
from tidu_cli.limits import limited_steps
from tidu_cli.port_data import Asked, Imported, Remarks
from tidu_cli.ports import Readable
from tidu_cli.runtime.evaluate import evaluate

if TYPE_CHECKING:
    from numpy.typing import NDArray


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


_INTERVAL = (-1.0, 1.0)  # of which integers are 0: indices that any table has


def version() -> str:
    """The version of onnxruntime. Raises TiduError, which says what to install, where it is missing."""
    return str(_package().__version__)


def against_onnxruntime(
    document: Document,
    model: bytes | str,
    names: Mapping[str, Key],
    given: Mapping[Key, NDArray[Any]],
    fixed: Mapping[str, NDArray[Any]],
    seed: int,
) -> list[Agreement]:
    """Compare the outputs of a model's document with those of onnxruntime, at the inputs given and random others.

    Where sizes are open, at two of them: of each output what agrees less. `model` is its bytes or path, `names` are the keys of its
    inputs and outputs, `fixed` values of inputs that the document has as constants. Raises TiduError for what the runtime does not
    run.
    """
    runtime = _package()
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # of many classes, which have none in common
        raise _refused(error) from None
    every = [_agreements(sized, session, names, given, fixed, seed) for _, sized in at_sizes(document, given)]
    return [max(of_sizes, key=lambda a: a.error) for of_sizes in zip(*every, strict=True)]


def _agreements(
    document: Document,
    session: Any,
    names: Mapping[str, Key],
    given: Mapping[Key, NDArray[Any]],
    fixed: Mapping[str, NDArray[Any]],
    seed: int,
) -> list[Agreement]:
    import numpy as np

    rng = np.random.default_rng(seed)
    values = {
        i.key: given[i.key] if i.key in given else draw(rng, cast(TensorType, i.type), _INTERVAL) for i in document.head.inputs
    }
    with limited_steps(None, drawn=True):
        ours = evaluate(document.head, values)
    try:
        fed = {i.name: fixed[i.name] if i.name in fixed else values[names[i.name]] for i in session.get_inputs()}
        theirs = {names[o.name]: y for o, y in zip(session.get_outputs(), session.run(None, fed), strict=True)}
    except Exception as error:  # likewise
        raise _refused(error) from None
    return [agreement(o.key, o.type, np.asarray(ours[o.key]), theirs[o.key]) for o in document.head.outputs]


def _refused(error: Exception) -> TiduError:
    return TiduError(f"onnxruntime {version()} does not run the model: {' '.join(str(error).split())}")


def _package() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise TiduError("--against onnxruntime needs that package: pip install onnxruntime") from None
    return onnxruntime


def remarks(source: Readable, where: str, imported: Imported, options: Mapping[str, Any], asked: Asked) -> Remarks:
    """What `check` says of a model. Raises TiduError."""
    data = source.read()
    held = holdings(opened(data, where, source.path))
    facts = held.facts() | _derivatives(imported.document)
    if imported.claim == "verified":
        facts["claims"] = VERIFIED
    holds = counted(held.operators.total(), "node")
    if asked.against is None:
        return Remarks(facts, (), holds)
    name, agreements = _compared(data, source.path, where, imported.document, Choices.of(**options), asked)
    return Remarks(facts, (), holds, name, agreements)


def in_double(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with all floats in double precision."""
    types = Choices.of(**options).types
    return {
        **options,
        "input_types": {name: replace(t, dtype="f64") if t.dtype in FLOATS else t for name, t in types.items()},
        "cast": "f64",
    }


def _derivatives(document: Document) -> dict[str, str]:
    """Where derivatives end, or would lack a rule."""
    from tidu_cli.checking.static import activity
    from tidu_cli.lax.vocabulary import vocabulary

    if len(document.graphs) > 1 or document.head.linear is not None:
        return {}
    active = activity(document.head, vocabulary(document.cases))
    told = [f"zero beyond {listed_counts(active.ending)}"] if active.ending else []
    told += [f"none of {listed_counts(active.lacking)}: {'; '.join(active.reasons)}"] if active.lacking else []
    if not active.moving:
        told.append("no output has one by an input")
    return {"derivatives": "; ".join(told) or "through every operator"}


def _compared(
    data: bytes, path: str | None, where: str, document: Document, choices: Choices, asked: Asked
) -> tuple[str, Sequence[Agreement]]:
    """The runtime with its version, and how its values agree with the document's."""
    from tidu_cli.adapters.onnx.reading.inputs import fixed, input_types

    graph = opened(data, where, path).graph
    declared = [i for i in graph.input if i.name not in {t.name for t in graph.initializer}]
    types = input_types(declared, choices)
    values = {name: fixed(name, value, types[name]) for name, value in choices.values.items()}
    names = {port.name: as_key(port.name) for port in (*graph.input, *graph.output)}
    agreements = against_onnxruntime(document, path or data, names, asked.given(document), values, asked.seed)
    return f"onnxruntime {version()}", agreements
