"""What is written as ONNX computes what it stands for, by other programs: primitive by primitive, in all dtypes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings

from tests.graphs.interpret import evaluate
from tests.graphs.strategies import REAL, documents, seeds
from tests.graphs.templates import apply
from tests.lax.sampling.samples import by_op
from tests.onnx.operators.one_node import eps
from tests.onnx.writing.written import by_reference, by_runtime, checked_model
from tests.tiers import campaign, examples, few
from tidu_cli.adapters.onnx.writing import linear_algebra
from tidu_cli.adapters.onnx.writing.lowering import CODES, NoMeaningError
from tidu_cli.adapters.onnx.writing.model import OLDEST_OPSET, OPSET
from tidu_cli.adapters.onnx.writing.templates import LOWERINGS, operators
from tidu_cli.checking.numeric.trials import draw, example_cases, of_operand, one_node_document
from tidu_cli.graph.graph import Case, CaseTable, Document, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose

NEWEST = 23
"""An opset that has operators in other versions than the default."""

OTHERWISE_ELSEWHERE = {(by_reference, "erf", "f64"), *((by_runtime, "reduce_prod", t) for t in ("i64", "i32", "i16", "u16"))}
"""What the reference evaluator computes in f32, and onnxruntime's products that overflow in floats."""


OPS = sorted(LOWERINGS.keys() - linear_algebra.LOWERINGS.keys() - {"erf"})
"""Those that no series and no loop approximates, of which `test_lowerings` knows how near they come."""


def are_arrays(case: Case) -> bool:
    return all(isinstance(t, TensorType) and t.dtype in CODES and not t.complex for t in (*case.operands, *case.results))


def require_values(case: Case, operands: list[Any], opset: int) -> None:
    """Raises AssertionError unless a program that reads ONNX, or two, compute the values of a case."""
    try:
        model = checked_model(one_node_document(case), opset)
    except NoMeaningError:
        return
    with np.errstate(all="ignore"):
        expected = [np.asarray(y) for y in apply(case, operands)]
    compared = 0
    for other in (by_reference, by_runtime):
        try:
            results = other(model, {f"x{k}": x for k, x in enumerate(operands)})
        except Exception:  # each has its own for what it has not got
            continue
        compared += 1
        if case.operands and (other, case.op, str(case.operands[0].dtype)) in OTHERWISE_ELSEWHERE:
            continue
        for x, y in zip(results, expected, strict=True):
            require_close(x, y, f"{other.__name__}: {case}")
    assert compared or "bf16" in map(str, (t.dtype for t in case.operands)), f"nobody computes {case}"


def require_close(actual: Any, expected: Any, what: str) -> None:
    """Sums are rounded in another order, and by functions that others round otherwise: a few digits of the greatest number."""
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape), what
    few = 32 * eps(actual.dtype)
    wide = [v.astype("f4") if v.dtype.kind == "V" else v for v in (actual, expected)]
    scale = np.abs(wide[1][np.isfinite(wide[1])]).max(initial=0) if few else 0
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(*wide, few, 2 * few * scale, err_msg=what)


@pytest.mark.parametrize("opset", [OLDEST_OPSET, NEWEST])
@pytest.mark.parametrize("op", OPS)
def test_examples_have_the_same_values(op: str, opset: int) -> None:
    rng, tried = np.random.default_rng(0), 0
    for example, case in few(example_cases(BUILTIN, BUILTIN[op]), 4 if opset == OLDEST_OPSET else 2):
        if are_arrays(case):
            tried += 1
            operands = [np.asarray(draw(rng, t, of_operand(example.within, k))) for k, t in enumerate(case.operands)]
            if opset == OLDEST_OPSET or tried <= 3:
                require_values(case, operands, opset)


@cache
def samples() -> dict[str, list[Any]]:
    """Samples of each primitive that is written: of those of no elements, and of all others."""
    of_op: dict[str, list[Any]] = {}
    for sample in (sample for op in LOWERINGS for sample in by_op().get(op, ())):
        if are_arrays(sample.case) and sample.attrs.get("mode") != "promise_in_bounds":
            of_op.setdefault(sample.op, []).append(sample)

    def some(op: str, all_: list[Any]) -> list[Any]:
        chosen = {*np.random.default_rng(list(op.encode())).permutation(len(all_))[: 40 if campaign() else 2]}
        empty = few([k for k, s in enumerate(all_) if any(0 in np.shape(x) for x in s.operands)], 1)
        return [s for k, s in enumerate(all_) if k in chosen or k in empty]

    return {op: some(op, all_) for op, all_ in of_op.items()}


@pytest.mark.parametrize("op", OPS)
def test_samples_of_all_shapes_have_the_same_values(op: str) -> None:
    for sample in samples().get(op, ()):
        require_values(sample.case, sample.operands, OLDEST_OPSET)


@settings(max_examples=examples(40), deadline=None)
@given(documents(makers=REAL, dtypes=("f64", "f32")), seeds)
def test_documents_have_the_same_values(document: Document, seed: int) -> None:
    """Of several graphs that share inputs, with bindings; and of their gradients."""
    rng = np.random.default_rng(seed)
    wrt = [i.key for i in document.free_inputs]
    for made in (document, transpose(linearize(document, wrt))):
        model = checked_model(made)
        inputs = {i.key: draw(rng, i.type, (-2, 2)) for i in made.free_inputs}
        outputs = by_reference(model, {str(key): x for key, x in inputs.items()})
        expected = [evaluate(made, inputs, [o.key]) for o in made.head.outputs]
        names = [o.name for o in model.graph.output]
        for output, values in zip(made.head.outputs, expected, strict=True):
            name = f"{output.key}:out" if str(output.key) in map(str, inputs) else str(output.key)
            require_close(np.asarray(outputs[names.index(name)]), np.asarray(values[output.key]), name)


ONE = {
    "Abs": "abs", "Add": "add", "Ceil": "ceil", "Concat": "concatenate", "Cos": "cos", "CumSum": "cumsum",
    "Equal": "eq", "Erf": "erf", "Exp": "exp", "Expand": "broadcast_in_dim", "Floor": "floor", "Greater": "gt", "Log": "log",
    "MatMul": "dot_general", "Max": "max", "Min": "min", "Mul": "mul", "Neg": "neg", "Pow": "pow", "ReduceMax": "reduce_max",
    "ReduceSum": "reduce_sum", "Reshape": "reshape", "Sigmoid": "logistic", "Sign": "sign", "Sin": "sin",
    "Slice": "slice", "Split": "split", "Sqrt": "sqrt", "Squeeze": "squeeze", "Sub": "sub", "Tanh": "tanh",
    "Transpose": "transpose", "Unsqueeze": "expand_dims", "Where": "select_n",
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_what_has_an_operator_is_that_operator(name: str) -> None:
    cases = [case for _, case in example_cases(BUILTIN, BUILTIN[ONE[name]]) if are_arrays(case)]
    assert [name] in [operators(case, OPSET, BUILTIN) for case in cases]


def test_a_function_is_there_once_for_all_nodes_of_a_case() -> None:
    """Of three nodes of which two are of one case there are two functions, and nothing is there that nobody calls."""
    cases, float_, wide = CaseTable(BUILTIN), TensorType("f32", (2,)), TensorType("f32", (3,))
    builder = GraphBuilder(cases, [Input(Key("x"), float_), Input(Key("y"), wide)])
    one, other = (cases.intern(BUILTIN.case("expm1", BUILTIN.parse_attrs("expm1", {}), None, [t])) for t in (float_, wide))
    numbers = [builder.append(one, [0]), builder.append(other, [1])]
    numbers.append(builder.append(one, [numbers[0]]))
    outputs = [Output(Key(f"z{k}"), v, t) for k, (v, t) in enumerate(zip(numbers, (float_, wide, float_), strict=True))]
    model = checked_model(Document((builder.build("f", outputs),), cases))
    assert [f.name for f in model.functions] == ["expm1_0", "expm1_1"]
    assert [n.op_type for n in model.graph.node] == ["expm1_0", "expm1_1", "expm1_0"]


@pytest.mark.parametrize("opset", [OLDEST_OPSET - 1, onnx.defs.onnx_opset_version() + 1])
def test_operator_sets_that_are_not_written_are_refused(opset: int) -> None:
    case = next(case for _, case in example_cases(BUILTIN, BUILTIN["add"]))
    with pytest.raises(NoMeaningError, match=str(opset)):
        checked_model(one_node_document(case), opset)
