"""Random models of ONNX and functions of JAX: values and derivatives are those of others; damaged models are refused in a line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.fuzz.choices import Choices
from tests.fuzz.target import Target, require_message
from tidu_cli.errors import TiduError

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx import ModelProto

N = 3
"""Rows and columns of every value, so that the operands of any operation fit."""

ONNX: dict[str, tuple[int, dict[str, Any]]] = {
    **dict.fromkeys(("Tanh", "Sigmoid", "Softplus", "Sin", "Cos", "Atan", "Relu", "Abs", "Neg", "Elu", "Selu"), (1, {})),
    **dict.fromkeys(("Softsign", "HardSigmoid", "Mish", "Floor", "Sign", "Exp"), (1, {})),
    **dict.fromkeys(("Add", "Sub", "Mul", "Max", "Min", "Mean", "Sum", "MatMul", "PRelu"), (2, {})),
    "Softmax": (1, {"axis": 0}), "LogSoftmax": (1, {"axis": -1}), "Transpose": (1, {"perm": [1, 0]}), "Trilu": (1, {"upper": 1}),
    "Einsum": (2, {"equation": "ij,kj->ik"}), "LeakyRelu": (1, {"alpha": 0.25}), "Celu": (1, {"alpha": 0.5}),
    "Gemm": (3, {"alpha": 0.5, "beta": 2.0, "transA": 1}), "LpNormalization": (1, {"axis": 1, "p": 2}),
}  # fmt: skip
"""Operators by name: the number of operands, and attributes. Of those the evaluator of onnx computes in double precision."""

JAX: dict[str, tuple[int, str]] = {
    **{name: (1, f"jnp.{name}(a)") for name in ("sin", "tanh", "exp", "abs", "sinh", "arctan", "sort", "triu", "flip")},
    **{name: (1, f"jax.nn.{name}(a)") for name in ("softmax", "gelu", "relu", "silu", "softplus", "logsumexp", "log_softmax")},
    **{name: (2, f"jnp.{name}(a, b)") for name in ("add", "multiply", "matmul", "maximum", "arctan2", "hypot", "subtract")},
    "gather": (1, "a[jnp.array([2, 0, 0])]"), "scatter": (2, "a.at[1].add(b[0])"), "where": (2, "jnp.where(a > b, a, jnp.sin(b))"),
    "scan": (2, "jax.lax.scan(lambda c, y: (jnp.tanh(c) + y, c * y), a[0], b)[1]"), "cumsum": (1, "jnp.cumsum(a, 0)"),
    "solve": (2, "jnp.linalg.solve(a + 9 * jnp.eye(3), b)"),
    "cond": (2, "jax.lax.cond(a[0, 0] > 0, jnp.sin, lambda x: x * b, a)"), "det": (1, "a * jnp.linalg.det(a)"),
    "fori": (2, "jax.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + b, a)"), "vmap": (2, "jax.vmap(jnp.dot, (0, None))(a, b)"),
    "einsum": (2, "jnp.einsum('ij,kj->ik', a, b)"), "cummax": (1, "jax.lax.cummax(a)"), "norm": (1, "a / jnp.linalg.norm(a)"),
}  # fmt: skip
"""Expressions of JAX in matrices a and b: the number of operands, and the text."""

TOLERANCE = 1e-9
"""How far values and derivatives may be apart, relative to the greatest number among them."""


def make(choices: Choices) -> bytes:
    """As JSON: the kind; nodes, each an operation and the numbers of its operands, x and y first; and the bytes to damage."""
    kind = choices.pick(("onnx", "damaged", "jax"))
    table: dict[str, Any] = JAX if kind == "jax" else ONNX
    nodes = []
    for node in range(1 + choices.below(6)):
        op = choices.pick(sorted(table))
        nodes.append([op, [choices.pick(range(2 + node)[-3:]) for _ in range(table[op][0])]])
    damage = [[choices.below(2**16), choices.below(3), list(choices.rest(choices.below(4)))] for _ in range(1 + choices.below(4))]
    return json.dumps([kind, nodes, damage if kind == "damaged" else []]).encode()


def judge(case: bytes) -> str:
    """Compare a model or a function, or read what was damaged."""
    kind, nodes, damage = json.loads(case)
    rng = np.random.default_rng(len(nodes))
    x, y = rng.standard_normal((2, N, N))
    if kind == "jax":
        return _as_jax_has_it(nodes, x, y)
    if kind == "onnx":
        return _as_onnx_has_it(_model(nodes), {"v0": x, "v1": y})
    return _read_or_refused(_damaged(_model(nodes).SerializeToString(), damage), {"v0": x, "v1": y})


def _model(nodes: list[Any]) -> ModelProto:
    from onnx import TensorProto, helper

    made = [
        helper.make_node(op, [f"v{a}" for a in operands], [f"v{k}"], name=f"n{k}", **ONNX[op][1])
        for k, (op, operands) in enumerate(nodes, 2)
    ]
    x, y, z = (helper.make_tensor_value_info(f"v{k}", TensorProto.DOUBLE, [N, N]) for k in (0, 1, 1 + len(nodes)))
    graph = helper.make_graph(made, "g", [x, y], [z])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def _as_onnx_has_it(model: ModelProto, at: dict[str, Any]) -> str:
    """Values are those of onnx's evaluator, also after the model is written and read again; derivatives those of differences."""
    from onnx.reference import ReferenceEvaluator

    from tests.onnx.operators.derivatives import require_derivatives
    from tidu_cli.api import evaluate
    from tidu_cli.formats.read import parse_document
    from tidu_cli.formats.write import format_document

    document = parse_document(model.SerializeToString(), "m.onnx")[0]
    again = parse_document(format_document(document, "onnx"), "again.onnx")[0]
    (name,) = (o.name for o in model.graph.output)
    with np.errstate(all="ignore"):
        (expected,) = ReferenceEvaluator(model).run(None, at)
        for each in (document, again):
            value = evaluate(each, at)[name]
            assert np.allclose(value, expected, TOLERANCE, TOLERANCE, equal_nan=True), f"{value} where {expected} is due"
        if not np.isfinite(expected).all() or np.abs(expected).max() > 1e3:
            return "onnx agrees, too large for differences"
        try:
            require_derivatives(document, at, ["v0", "v1"], [name], n_directions=1, reach=0.25)
        except AssertionError as error:
            if "has no derivative here" not in str(error):
                raise
            return "onnx agrees, near a kink"
    return "onnx agrees, with difference quotients"


def _as_jax_has_it(nodes: list[Any], x: Any, y: Any) -> str:
    """Values, JVP, VJP and HVP are JAX's."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")
    from tests.jax.functions.agreement import compared

    scope = {"jax": jax, "jnp": jax.numpy}
    steps: list[tuple[Callable[..., Any], list[int]]] = [(eval(f"lambda a, b=0: {JAX[op][1]}", scope), of) for op, of in nodes]

    def function(x: Any, y: Any) -> Any:
        values = [x, y]
        for step, operands in steps:
            values.append(jax.numpy.broadcast_to(step(*(values[k] for k in operands)), (N, N)))
        return values[-1]

    with np.errstate(all="ignore"):
        distances = compared(function, x, y)
    if not all(map(np.isfinite, distances.values())):
        return "jax, not finite"
    assert max(distances.values()) <= TOLERANCE, f"tidu and JAX are apart: {distances}"
    return "jax agrees"


def _damaged(data: bytes, damage: list[Any]) -> bytes:
    for at, left_out, more in damage:
        at %= len(data) + 1
        data = data[:at] + bytes(more) + data[at + left_out :]
    return data or b"\x08"


def _read_or_refused(data: bytes, at: dict[str, Any]) -> str:
    """What is read may be derived and evaluated, or that is refused in a line, too."""
    from tidu_cli.api import evaluate, vjp
    from tidu_cli.formats.read import parse_imported

    reached = "refused"
    try:
        document = parse_imported(data, "m.onnx")[0].document
        reached = "read"
        values = {str(key): at[str(key)] for key in document.inputs if str(key) in at}
        with np.errstate(all="ignore"):
            evaluate(document, values)
        vjp(document, list(values))
    except TiduError as error:
        require_message(error)
        return f"damaged, {reached}"
    return "damaged, derived"


MODELS = Target("models", ".model", make, judge)
