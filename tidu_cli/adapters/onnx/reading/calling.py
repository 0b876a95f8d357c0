"""What a node calls: the operator, or the function that the specification defines it by; and what goes in and out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tidu_cli import errors
from tidu_cli.adapters.numpy.arrays.array import Array, name_of
from tidu_cli.adapters.onnx.contents import nodes_within
from tidu_cli.adapters.onnx.loading import DTYPES, HELD, declared_shape, package
from tidu_cli.adapters.onnx.reading.node import (
    Importing,
    NeedsBoundError,
    Node,
    Operator,
    RefusedError,
    UnreadError,
    Value,
    defaults,
    schema,
)
from tidu_cli.adapters.onnx.reading.open_sizes import UnboundedError
from tidu_cli.adapters.onnx.reading.operators.index import CUT, operator, operators, refusals
from tidu_cli.adapters.onnx.reading.operators.joining import TAKING
from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.sizes.open import OpenSize, surely
from tidu_cli.graph.types import FLOATS, TensorType
from tidu_cli.limits import require

# Names of values in a model's graph, in graphs within its nodes, and in functions.


class Definition(Frozen, slots=False):
    """What nodes are part of, the model's graph or a function: versions of operator sets by domain, and given attributes."""

    versions: Mapping[str, int]
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, opsets: Iterable[Any], attributes: Mapping[str, Any]) -> Definition:
        """The definition with these imports of operator sets."""
        return cls({domain_name(o.domain): o.version for o in opsets}, attributes)


def domain_name(domain: str) -> str:
    """A domain by its one name: the default one has two."""
    return "" if domain == "ai.onnx" else domain


def operator_name(domain: str, op_type: str) -> str:
    """An operator by the name of its type, before which stands the domain unless it is the default one."""
    return f"{domain_name(domain)}.{op_type}" if domain_name(domain) else str(op_type)


class Scope:
    """The values of names in a graph, and of those around it."""

    def __init__(self, definition: Definition, around: Scope | None = None, path: str | None = "") -> None:
        """`path` says where the graph is within nodes, None in a function."""
        self.definition = definition
        self.path = path
        self.values: dict[str, Value] = {}
        self.around = around

    def get(self, name: str) -> Value | None:
        """The value of a name, None if there is none."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.around
        return None


# What the specification says of an operator's inputs: how many there are, which may be left out, and of which dtypes they are.


_NAMES = {"float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128"}
_NAMES["bool"] = "bool"
_NAMES |= {name: name for name, _ in HELD.values()}
_NAMES |= {f"{sign}int{bits}": f"{letter}{bits}" for sign, letter in (("", "i"), ("u", "u")) for bits in (8, 16, 32, 64)}

_KINDS = {"INT": (int, False), "FLOAT": (float, False), "STRING": (str, False)}
_KINDS |= {f"{name}S": (kind, True) for name, (kind, _) in _KINDS.items()}
"""Python's types of attributes by the names that schemas have for theirs, and whether there is a list of them."""


class Parameter(NamedTuple):
    """An input as it is declared. `kind` names the type that all inputs of it have, "" where they may differ."""

    name: str
    kind: str
    dtypes: frozenset[str]
    optional: bool


@lru_cache(maxsize=1024)
def _parameters(op_type: str, version: int, domain: str) -> tuple[Parameter, ...]:
    declared = schema(op_type, version, domain)
    allowed = {c.type_param_str: c.allowed_type_strs for c in declared.type_constraints}
    parameters = []
    for i in declared.inputs:
        texts = allowed.get(i.type_str, [i.type_str])
        tensors = [text.removeprefix("tensor(").removesuffix(")") for text in texts if text.startswith("tensor(")]
        dtypes = {_NAMES[name] for name in tensors if name in _NAMES} if len(tensors) == len(texts) else set()
        dtypes |= FLOATS if dtypes & FLOATS else set()  # floats may be read as others
        kind = i.type_str if i.is_homogeneous else ""
        parameters.append(Parameter(i.name, kind, frozenset(dtypes), i.option == declared.FormalParameterOption.Optional))
    return tuple(parameters)


def require_fitting(node: Node, operands: Sequence[Value]) -> None:
    """Raises RefusedError unless inputs and attributes of a node are as the schema of its operator says."""
    declared = schema(node.op_type, node.version, node.domain)
    n, least, most = len(operands), declared.min_input, declared.max_input
    if not least <= n <= most:
        raise RefusedError(f"takes {least if least == most else f'{least} to {most}'} inputs, and has {n}")
    for name, attribute in declared.attributes.items():
        if attribute.required and name not in node.attributes:
            raise RefusedError(f"its attribute '{name}' is missing")
        if name in node.attributes and not _is_of(node.attributes[name], attribute.type.name):
            raise RefusedError(f"its attribute '{name}' is not of the type that is due, {attribute.type.name.lower()}")
    _require_types(_parameters(node.op_type, node.version, node.domain), operands, [_kind(node, x) for x in operands])


def _is_of(value: Any, due: str) -> bool:
    """Whether the value of an attribute is of a type as schemas call it: of those that operators read, others they look at."""
    if due == "GRAPH":
        return type(value).__name__ == "GraphProto"
    if due == "TENSOR":
        return isinstance(value, np.ndarray) or type(value).__name__ == "TensorProto"
    kind, is_list = _KINDS.get(due, (object, False))
    return isinstance(value, list) and all(isinstance(x, kind) for x in value) if is_list else isinstance(value, kind)


def _require_types(parameters: Sequence[Parameter], operands: Sequence[Value], dtypes: Sequence[str | None]) -> None:
    kinds: dict[str, tuple[str, str]] = {}
    for k, x in enumerate(operands):
        p = parameters[min(k, len(parameters) - 1)]
        if x is None:
            if not p.optional:
                raise RefusedError(f"its input '{p.name}' is left out")
            continue
        dtype = dtypes[k]
        if dtype is None or not p.dtypes:
            continue
        if dtype not in p.dtypes:
            raise RefusedError(f"its input '{p.name}' is of {dtype}, and takes {', '.join(sorted(p.dtypes))}")
        name, other = kinds.setdefault(p.kind, (p.name, dtype))
        if p.kind and other != dtype:
            raise RefusedError(f"its inputs '{name}' and '{p.name}' are of {other} and {dtype}, and take one type")


def _kind(node: Node, x: Any) -> str | None:
    """The name of the type of an array, None for sequences."""
    if isinstance(x, Array):
        return node.importing.stands_for(x) or x.type.dtype
    return node.kind(x) if hasattr(x, "dtype") else None


WRONG = (errors.TiduError, ValueError, TypeError, LookupError, ArithmeticError, MemoryError, RecursionError, NotImplementedError)
"""What operators raise for operands that do not fit."""

_RAW = re.compile(
    r"values to unpack|index out of range|cannot reshape array|^zip\(\)|(could not|cannot) be broadcast|cannot convert float"
    r"|NoneType|too small depth|inhomogeneous shape|must match exactly|not supported between|unsupported operand|^argument "
)
"""What Python and NumPy say of operands that do not fit, which names nothing of the model."""


def in_words(error: BaseException, importing: Importing, proto: Any, scope: Scope) -> str:
    """What an error says of a node; where no reader raised it, with what the node was given, and perhaps the way out."""
    sizes = open_sizes_of(importing, [scope.get(name) for name in proto.input if name])
    if isinstance(error, errors.TiduError) and not isinstance(error, ValueError):
        told = str(error) or type(error).__name__
        if isinstance(error, errors.UndecidedSizeError):  # whose way out is another one here
            told = re.split("; (?:give|say|write) ", told)[0]
        return f"{told}{_way_to_choose(importing, sizes, told, error)}" if sizes and not isinstance(error, UnreadError) else told
    told = str(error)
    if hasattr(error, "same"):
        told = "cannot decide whether the sizes {} and {} are the same".format(*error.same)
    if not told or isinstance(error, KeyError) or _RAW.search(told):
        told = "its inputs do not broadcast together" if "broadcast" in told else "does not fit what it is given"
    given = [f"'{name}' {_described(importing, scope.get(name))}" for name in proto.input if name]
    if sizes:
        told += _way_to_choose(importing, sizes, told, error)
    elif importing.is_sized:
        told += f"; perhaps the model takes other sizes than are chosen by {errors.Remedy(flag='--dim', python='dims')}"
        told += f" and {errors.Remedy(flag='--input-type', python='input_types')}"
    return f"{told} (its inputs: {', '.join(given)})" if given else told


def open_sizes_of(importing: Importing, operands: Sequence[Value]) -> list[str]:
    """The names of open sizes in the types of operands, or in what these are."""
    held: list[Any] = []
    for x in operands:
        for array in x if isinstance(x, list) else [x]:
            held += getattr(array, "shape", ())
            sizes = None if array is None else importing.sizes(array)
            held += [] if sizes is None else sizes.array.ravel().tolist()
    if not any(isinstance(n, OpenSize) for n in held):
        return []
    from tidu_cli.graph.sizes.algebra import names_of

    return list(dict.fromkeys(name.text for n in held for name in names_of(n)))


def _way_to_choose(importing: Importing, names: Sequence[str], told: str, error: BaseException) -> str:
    """How sizes are chosen that a message names, or, unless it is of numbers, all of a node; empty if it has another way out."""
    named = [name for name in names if re.search(rf"\b{name}\b", told)]
    is_of_numbers = isinstance(error, errors.TiduError) and not isinstance(error, errors.UndecidedSizeError | ValueError)
    words: str = importing.dimensions.choosing(named or names, getattr(error, "same", None))
    return "" if "--" in told or "load_onnx(" in told or (is_of_numbers and not named) else words


def _described(importing: Importing, x: Value) -> str:
    """The type of a value, and the numbers of sizes and axes."""
    if x is None or isinstance(x, list):
        return "undefined" if x is None else f"a sequence of {len(x)}"
    kind = importing.stands_for(x) or name_of(x.dtype)
    known = importing.known(x) if surely(lambda: x.size <= 8) and np.dtype(x.dtype).kind == "i" else None
    return str(TensorType("i64", x.shape)).replace("i64", kind, 1) + ("" if known is None else f" = {known.tolist()}")


_CODES = {name: code for code, name in (*DTYPES.items(), *((code, name) for code, (name, _) in HELD.items()))}


def operands_of(proto: Any, scope: Scope) -> list[Value]:
    """The operands of a node, None for those left out. Raises RefusedError for a name that has no value."""
    operands = []
    for name in proto.input:
        x = scope.get(name) if name else None
        if name and x is None:
            raise RefusedError(f"reads the undefined value '{name}', which no input, initializer or earlier node gives")
        operands.append(x)
    return operands


def operator_of(node: Node, operands: Sequence[Value]) -> Operator | None:
    """The operator of a node, None where its function is to be expanded. Raises RefusedError for what is not read here."""
    declared = schema(node.op_type, node.version, node.domain)
    if declared is not None:
        require_fitting(node, operands)
    if node.op_type not in TAKING and any(isinstance(x, list) for x in operands):
        raise RefusedError("is given a sequence of arrays, and takes arrays")
    known = operator(node.domain, node.op_type)
    if known is not None:
        return known
    reason = refusals(node.domain).get(node.op_type)
    if reason:
        way = errors.Remedy(flag=CUT, python="load_onnx(MODEL, cut=NAME, input_types={NAME: TYPE})")
        raise UnreadError(reason.replace(CUT, str(way)))
    if declared is None:
        hint = errors.did_you_mean(node.op_type, list(operators(node.domain)))
        raise UnreadError(f"is not an operator of '{node.domain or 'ai.onnx'}' that is read{hint} (docs/onnx.md lists them)")
    return None


def is_read(op_type: str, domain: str, version: int) -> bool:
    """Whether there is an operator here, or a function that defines it."""
    if op_type in operators(domain) or op_type in refusals(domain):
        return op_type in operators(domain)
    declared = schema(op_type, version, domain)
    return declared is not None and (declared.has_function or declared.has_context_dependent_function)


class Expansion:
    """Operators as the functions that the specification defines them by. Counts the nodes that they stand for."""

    def __init__(self) -> None:
        self._n = 0

    def add(self, n: int) -> None:
        """So many nodes more. Raises LimitError."""
        self._n += n
        require("expansion", self._n, "the functions of the model")

    def function(self, node: Node, proto: Any, operands: Sequence[Value]) -> tuple[Any, Mapping[str, Any]]:
        """The function of an operator for these operands, and its attributes' defaults. Raises RefusedError if it has none."""
        spec = schema(node.op_type, node.version, node.domain)
        if spec.has_function:
            function = package().FunctionProto()
            function.ParseFromString(spec.get_function_with_opset_version(_newest(spec.function_opset_versions, node.version)))
        elif spec.has_context_dependent_function:
            function = self._dependent(spec, node, proto, operands)
        else:
            raise UnreadError("is an operator that tidu does not read yet (docs/onnx.md lists those that it does)")
        return function, defaults(node.op_type, node.version, node.domain)

    def _dependent(self, schema: Any, node: Node, proto: Any, operands: Sequence[Value]) -> Any:
        helper = package().helper

        def typed(x: Value) -> Any:
            return helper.make_tensor_type_proto(_CODES[node.kind(x)], declared_shape(np.shape(x))).SerializeToString()

        types = [b"" if x is None else typed(x) for x in operands]
        version = _newest(schema.context_dependent_function_opset_versions, node.version)
        resolved = helper.make_node(proto.op_type, proto.input, proto.output, domain=proto.domain)
        given = [a for a in proto.attribute if not a.ref_attr_name]
        names = {a.name: node.attributes[a.name] for a in proto.attribute if a.ref_attr_name and a.name in node.attributes}
        resolved.attribute.extend([*given, *[helper.make_attribute(name, value) for name, value in names.items()]])
        try:
            data = schema.get_context_dependent_function_with_opset_version(version, resolved.SerializeToString(), types)
        except RuntimeError as error:
            raise RefusedError(f"the function that defines it cannot be made: {error}") from None
        function = package().FunctionProto()
        function.ParseFromString(data)
        return function


def _newest(versions: Sequence[int], version: int) -> int:
    """The newest of some versions that is no newer than one, else the oldest."""
    return max((v for v in versions if v <= version), default=min(versions))


def required(scope: Scope, name: str) -> Value:
    """The value of an output. Raises DocumentError if no node computes it."""
    x = scope.get(name)
    if x is None:
        raise errors.DocumentError(f"output '{name}' is computed by no node")
    return x


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Within the block, errors have this place before them."""
    try:
        yield
    except WRONG as error:
        raise like(error)(f"{place}: {error}") from error


def function_called(node: Any) -> tuple[str, str, str]:
    """The function that a node calls, if the model has it: its domain, name and overload."""
    return domain_name(node.domain), node.op_type, node.overload


def raised(error: BaseException, message: str) -> BaseException:
    """An error with a message in its stead, and what else it says: inputs, or a bound that a size needs."""
    if isinstance(error, UnboundedError) or hasattr(error, "same"):
        from tidu_cli.graph.sizes.names import bounds_by_which

        if (bound := bounds_by_which(getattr(error, "due", None), getattr(error, "same", None))) is not None:
            return NeedsBoundError(message, bound)
    more = [getattr(error, name) for name in ("inputs", "bound") if hasattr(error, name)]
    return like(error)(message, *more)  # type: ignore[no-any-return]


def like(error: BaseException) -> Any:
    """The class of an error that is raised with a place in its stead."""
    return type(error) if isinstance(error, RefusedError | errors.UnknownNameError | errors.LimitError) else errors.DocumentError


def also_unread(model: Any, told: str) -> str:
    """The other operators of a model that tidu does not read, besides `told`."""
    functions = {(domain_name(f.domain), f.name) for f in model.functions}
    versions = {domain_name(o.domain): o.version for o in model.opset_import}
    unread: Counter[str] = Counter()
    for node in nodes_within([*model.graph.node, *(node for f in model.functions for node in f.node)]):
        domain = domain_name(node.domain)
        if (domain, node.op_type) not in functions and not is_read(node.op_type, domain, versions.get(domain, 1)):
            unread[operator_name(domain, node.op_type)] += 1
    others = [f"{name} ({errors.counted(n, 'node')})" for name, n in unread.items() if f"({name.rpartition('.')[2]}): " not in told]
    return f"; nor are read {', '.join(others)}" if others else ""
