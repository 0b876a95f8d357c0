"""What a node calls: the operator, or the function that the specification defines it by; and what goes in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, name_of
from tidu_cli.adapters.onnx.loading import package
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, UnreadError, Value, defaults, schema
from tidu_cli.adapters.onnx.reading.operators.arrays.sequences import TAKING
from tidu_cli.adapters.onnx.reading.operators.index import CUT, operators, refusals
from tidu_cli.adapters.onnx.reading.scopes import Scope
from tidu_cli.adapters.onnx.reading.signatures import require_fitting
from tidu_cli.adapters.onnx.tensors import DTYPES
from tidu_cli.errors import Remedy, TiduError, did_you_mean
from tidu_cli.limits import require

WRONG = (TiduError, ValueError, TypeError, LookupError, ArithmeticError, MemoryError, RecursionError, NotImplementedError)
"""What operators raise for operands that do not fit."""

_CODES = {name: code for code, name in DTYPES.items()}


def operands_of(proto: Any, scope: Scope) -> list[Value]:
    """The operands of a node, None for those left out. Raises RefusedError for a name that has no value."""
    found = []
    for name in proto.input:
        x = scope.get(name) if name else None
        if name and x is None:
            raise RefusedError(f"reads '{name}', which neither an input, an initializer nor a node before it is")
        found.append(x)
    return found


def operator_of(node: Node, operands: Sequence[Value]) -> Operator | None:
    """The operator of a node, None where its function is to be expanded. Raises RefusedError for what is not read here."""
    known = operators(node.domain)
    found = schema(node.op_type, node.version, node.domain)
    if found is not None:
        require_fitting(node, operands)
    if node.op_type not in TAKING and any(isinstance(x, list) for x in operands):
        raise RefusedError("is given a sequence of arrays, and takes arrays")
    if node.op_type in known:
        return known[node.op_type]
    reason = refusals(node.domain).get(node.op_type)
    if reason:
        way = Remedy(flag=CUT, python="load_onnx(MODEL, cut=NAME, input_types={NAME: TYPE})")
        raise UnreadError(reason.replace(CUT, str(way)))
    if found is None:
        hint = did_you_mean(node.op_type, list(known))
        raise UnreadError(f"is no operator of the domain '{node.domain or 'ai.onnx'}' that is read{hint} (docs/onnx.md lists them)")
    return None


def is_read(op_type: str, domain: str, version: int) -> bool:
    """Whether there is an operator here, or a function that defines it."""
    if op_type in operators(domain) or op_type in refusals(domain):
        return op_type in operators(domain)
    found = schema(op_type, version, domain)
    return found is not None and (found.has_function or found.has_context_dependent_function)


def results_of(found: Any, op_type: str) -> list[Value]:
    """What an operator gave, as a list."""
    return list(found) if isinstance(found, list | tuple) else [found]


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
        found = schema(node.op_type, node.version, node.domain)
        if found.has_function:
            function = package().FunctionProto()
            function.ParseFromString(found.get_function_with_opset_version(_newest(found.function_opset_versions, node.version)))
        elif found.has_context_dependent_function:
            function = self._dependent(found, node, proto, operands)
        else:
            raise UnreadError("is an operator that tidu does not read yet (docs/onnx.md lists those that it does)")
        return function, defaults(node.op_type, node.version, node.domain)

    def _dependent(self, schema: Any, node: Node, proto: Any, operands: Sequence[Value]) -> Any:
        helper = package().helper
        types = [b"" if x is None else helper.make_tensor_type_proto(_code(x), np.shape(x)).SerializeToString() for x in operands]
        version = _newest(schema.context_dependent_function_opset_versions, node.version)
        resolved = helper.make_node(proto.op_type, proto.input, proto.output, domain=proto.domain)
        given = [a for a in proto.attribute if not a.ref_attr_name]
        names = {a.name: node.attributes[a.name] for a in proto.attribute if a.ref_attr_name and a.name in node.attributes}
        resolved.attribute.extend([*given, *[helper.make_attribute(name, value) for name, value in names.items()]])
        try:
            found = schema.get_context_dependent_function_with_opset_version(version, resolved.SerializeToString(), types)
        except RuntimeError as error:
            raise RefusedError(f"the function that defines it cannot be made: {error}") from None
        function = package().FunctionProto()
        function.ParseFromString(found)
        return function


def _newest(versions: Sequence[int], version: int) -> int:
    """The newest of some versions that is no newer than one, else the oldest."""
    return max((v for v in versions if v <= version), default=min(versions))


def _code(x: Value) -> int:
    return _CODES[x.type.dtype if isinstance(x, Array) else name_of(x.dtype)]
