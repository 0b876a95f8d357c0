"""Models of one node, and what tidu, onnx's reference evaluator and onnxruntime make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.onnx.operators.node_tests import imported
from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.loading import loaded
from tidu_cli.adapters.onnx.reading.importer import import_model
from tidu_cli.api import evaluate

NEWEST = onnx.defs.onnx_opset_version()


NUMBERS = ("f4", "f8", "f2", ml_dtypes.bfloat16, "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?")


@dataclass(frozen=True)
class One:
    """An operator at a version of its set, and its operands, None for those left out."""

    op: str
    operands: Sequence[Any]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    version: int = NEWEST
    outputs: int = 1
    domain: str = ""

    def __str__(self) -> str:
        shown = ", ".join("-" if x is None else f"{np.asarray(x).dtype}{list(np.shape(x))}" for x in self.operands)
        told = "".join(f" {name}={value!r}" for name, value in self.attrs.items())
        return f"{self.op}-{self.version}({shown}){told}"

    @property
    def given(self) -> dict[str, Any]:
        """The operands by the names of the model's inputs."""
        return {f"x{k}": np.asarray(x) for k, x in enumerate(self.operands) if x is not None}

    @property
    def model(self) -> Any:
        """The model, whose outputs are y0, y1, ..."""
        names = ["" if x is None else f"x{k}" for k, x in enumerate(self.operands)]
        results = [f"y{k}" for k in range(self.outputs)]
        node = helper.make_node(self.op, names, results, domain=self.domain, **self.attrs)
        inputs = [
            helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for k, x in self.given.items()
        ]
        outputs = [helper.make_tensor_value_info(k, TensorProto.UNDEFINED, None) for k in results]
        graph = helper.make_graph([node], "one", inputs, outputs)
        opsets = [helper.make_opsetid("", self.version), *([helper.make_opsetid(self.domain, 1)] if self.domain else [])]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def by_tidu(one: One, fold: bool = False) -> list[Any]:
    """What tidu computes; with `fold` all operands are known when the model is read. Raises TiduError."""
    model, given = loaded(one.model.SerializeToString()), one.given
    document = (import_model(model, Choices(values=given)) if fold else imported(model, given)).document
    values = evaluate(document, {k: x for k, x in given.items() if k in map(str, document.inputs)})
    return [np.asarray(values[f"y{k}"]) for k in range(one.outputs)]


def by_reference(one: One) -> list[Any]:
    """What the reference evaluator computes."""
    from onnx.reference import ReferenceEvaluator

    with np.errstate(all="ignore"):
        return [np.asarray(y) for y in ReferenceEvaluator(one.model).run(None, one.given)]


def by_runtime(one: One) -> list[Any]:
    """What onnxruntime computes."""
    import onnxruntime

    model = one.model
    model = onnx.shape_inference.infer_shapes(model)
    for output in model.graph.output:
        if not output.type.tensor_type.elem_type:  # of domains that the package does not know
            output.ClearField("type")
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, one.given))


def require_equal(actual: Sequence[Any], expected: Sequence[Any], what: str, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Raises AssertionError unless dtypes, shapes and values agree, NaNs in the same places."""
    for k, (x, y) in enumerate(zip(actual, expected, strict=True)):
        assert (x.dtype, x.shape) == (y.dtype, y.shape), f"{what}, output {k}: {x.dtype}{x.shape}, not {y.dtype}{y.shape}"
        wide = [v.astype("f4") if v.dtype.kind == "V" else v for v in (x, y)]
        np.testing.assert_allclose(*wide, rtol, atol, err_msg=f"{what}, output {k}")


def require_agreement(one: One, rtol: float = 0.0, atol: float = 0.0, others: Sequence[Any] = (by_reference, by_runtime)) -> None:
    """Raises AssertionError unless tidu agrees with the other evaluators, and folded with recorded.

    One of the others takes the model.
    """
    outputs, compared = by_tidu(one), 0
    for other in others:
        try:
            expected = other(one)
        except Exception:  # each has its own for what it does not take
            continue
        compared += 1
        require_equal(outputs, expected, f"{one}, {other.__name__}", rtol, atol)
    assert compared, f"{one}: nobody else takes it"
    require_equal(by_tidu(one, fold=True), outputs, f"{one}, folded", rtol, atol)


def eps(dtype: Any) -> float:
    """The distance from 1 to the next float; 0 for other dtypes."""
    return float(ml_dtypes.finfo(dtype).eps) if np.dtype(dtype).kind in "fV" else 0.0


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 1e4]


def draw(rng: np.random.Generator, dtype: Any, shape: Sequence[int], special: bool = True) -> Any:
    """Small numbers of a dtype, of floats some that are special."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(-6 if dtype.kind == "i" else 0, 7, shape).astype(dtype)
    x = rng.standard_normal(shape) * 2
    return np.asarray(np.where(rng.random(shape) < 0.15, rng.choice(SPECIAL, shape), x) if special else x).astype(dtype)


def versions(op: str) -> list[int]:
    """The versions from 7 on at which an operator is another one, and the newest."""
    since = sorted(s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name == op and s.domain == "")
    oldest = max([v for v in since if v <= 7], default=since[0])
    gone = max(since) if onnx.defs.get_schema(op, NEWEST).deprecated else NEWEST + 1
    return sorted({max(v, 7) for v in since if oldest <= v < gone} | ({NEWEST} if gone > NEWEST else set()))


DTYPES = {
    f"tensor({helper.tensor_dtype_to_string(code).removeprefix('TensorProto.').lower()})": dtype
    for code, dtype in ((helper.np_dtype_to_tensor_dtype(np.dtype(d)), np.dtype(d)) for d in NUMBERS)
}


def dtypes(op: str, version: int) -> list[Any]:
    """The dtypes that tidu has, of those that an operator takes as its first operand."""
    schema = onnx.defs.get_schema(op, version)
    first = schema.inputs[0].type_str
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}.get(first, [first])
    return [dtype for name, dtype in DTYPES.items() if name in allowed]
