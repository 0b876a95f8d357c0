"""Documents with open sizes become modules with `?`, which JAX runs for arrays of all sizes, and which are read as they were."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from jax import export
from jax.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import stablehlo

import tests.tiers as tiers
import tidu_cli as tidu
from tests.graphs.strategies import REAL, documents, seeds
from tests.sizes.opened import opened_document
from tests.stablehlo.claims.written import arguments, by_xla, in_this_process, require_round_trip
from tests.tiers import few
from tidu_cli.adapters.jax.dims import dims_of, scope_of
from tidu_cli.adapters.stablehlo.files import stablehlo_artifact
from tidu_cli.adapters.stablehlo.reading.importer import import_module
from tidu_cli.adapters.stablehlo.text import UnwrittenError, shapes_of
from tidu_cli.errors import MissingRuleError, UndecidedSizeError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.open_sizes import open_names
from tidu_cli.graph.sizes.algebra import Name
from tidu_cli.graph.sizes.reading import declaring
from tidu_cli.graph.types import TensorType

jax.config.update("jax_enable_x64", True)

SIZES = (1, 2, 3, 7)


def called(document: Document) -> Callable[..., Any]:
    """The module of a document as jax.export calls it: with its own numbers for sizes, after its assertions."""
    with scope_of(open_names(document).values()):
        operands = jax.tree.leaves([shapes_of(i.type, dims_of) for i in document.free_inputs])
        results = jax.tree.leaves([shapes_of(o.type, dims_of) for graph in document.graphs for o in graph.outputs])
        zeros = jax.jit(lambda *xs: [jnp.zeros(y.shape, y.dtype) for y in results], keep_unused=True)
        like = export.export(zeros, platforms=("cpu",))(*operands)
    call = replace(like, mlir_module_serialized=stablehlo_artifact(document)).call
    return jax.jit(call, compiler_options={"xla_backend_optimization_level": 0})  # most of a test's time would be LLVM's


def derived(document: Document, order: int) -> Document:
    wrt = [str(i.key) for i in document.free_inputs if i.type.inexact]
    if order:
        document = tidu.transpose(tidu.linearize(document, wrt))
    if order == 2:
        document = tidu.linearize(tidu.materialize(document), wrt)
    return tidu.materialize(document)


def require_values(document: Document, sizes: Mapping[str, int], run: Callable[..., Any] | None = None) -> None:
    """Raises AssertionError unless JAX computes what evaluation here does, at these sizes."""
    fixed = tidu.specialize(document, size=dict(sizes))
    rng = np.random.default_rng(7)
    values = {i.key: _drawn(rng, i.type) for i in fixed.free_inputs}
    results = (run or called(document))(*arguments(fixed, values))
    due = tidu.evaluate(document, {str(key): x for key, x in values.items()})
    for y, (key, value) in zip(results, due.items(), strict=True):
        np.testing.assert_allclose(y, value, rtol=1e-10, atol=1e-11, err_msg=f"{key} at {sizes}")


def _drawn(rng: np.random.Generator, type_: Any) -> Any:
    if type_.dtype == "bool":
        return rng.random(type_.shape) < 0.5
    return rng.uniform(0.5, 1.5, type_.shape) if type_.inexact else rng.integers(0, 2, type_.shape)


def document_of(inputs: Mapping[str, str], nodes: Sequence[Any], output: int, sizes: Any = None) -> Document:
    graph = {
        "name": "f",
        "inputs": [{"key": key, "type": t} for key, t in inputs.items()],
        "nodes": nodes,
        "outputs": [{"key": "y", "value": output}],
    }
    plain = {"tidu": 1, "graphs": [graph]} | ({"sizes": sizes} if sizes else {})
    return parse_document(json.dumps(plain).encode(), "document")[0]


def squared(type_: str, **sizes: Any) -> Document:
    return document_of({"x": type_}, [{"op": "mul", "inputs": [0, 0]}], 1, sizes)


def read_plainly(document: Document) -> Document:
    return import_module(in_this_process(format_document(document, "mlir"), "text"))


# Values.


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(x: Any) -> Any:
    time = np.arange(x.shape[1])
    scores = np.where(time[:, None] >= time, x @ x.transpose(0, 2, 1) / 2.0, -np.inf)
    return softmax(scores) @ x


PROGRAMS: Mapping[str, tuple[Callable[..., Any], Sequence[str]]] = {
    "scan": (lambda x: tidu.scan(lambda c, row: (c * 0.5 + row * row, c * row), np.zeros(3), x)[1], ("f64[N,3]",)),
    "mean": (lambda w, x: np.mean((x @ w) ** 2), ("f64[3]", "f64[N,3]")),
    "softmax": (softmax, ("f64[2,N]",)),
    "attention": (attention, ("f64[N,M,2]",)),
    "convolution": (lambda x, k: np.convolve(np.convolve(x, np.arange(3.0)), k), ("f64[N]", "f64[2]")),
    "gather": (lambda x, at: np.sin(x[at]) * 2, ("f64[N,3]", "i64[M]")),
    "slices": (lambda x: x[1:] * x[:-1] + x[-1] * x[::-1][:-1], ("f64[N+1,3]",)),
    "joined": (lambda x: np.pad(np.concatenate([x, x**2]), 1).reshape(-1), ("f64[N,3]",)),
    "halves": (lambda x: x[: x.shape[0] // 2 + 1] ** 2, ("f64[N,3]",)),
    "cumulative": (lambda x: np.sort(x, 0) * np.cumsum(x, 0), ("f64[N,3]",)),
    "spread": (lambda x: np.std(x, 0) + np.log(np.sum(np.exp(x))) + np.trace(x.T @ x), ("f64[N,3]",)),
    "pooling": (lambda x: np.lib.stride_tricks.sliding_window_view(x, 2).max(-1), ("f64[N+1]",)),
    "solutions": (lambda x: np.linalg.solve(x + 3 * np.eye(2), x), ("f64[N,2,2]",)),
}


@pytest.mark.parametrize("name", few(PROGRAMS, 8))
@pytest.mark.parametrize("order", [0, 1, 2])
def test_jax_runs_a_written_module_for_all_sizes(name: str, order: int) -> None:
    function, types = PROGRAMS[name]
    document = derived(tidu.trace(function, *types), order)
    run, names = called(document), sorted(open_names(document))
    for n in few(SIZES, 2):
        require_values(document, {text: n + k for k, text in enumerate(names)}, run)


@settings(max_examples=tiers.examples(40, check=2))
@given(documents(makers=REAL, dtypes=("f64",)), seeds)
def test_random_programs(document: Document, seed: int) -> None:
    document = tidu.materialize(document)
    numbers = {n for i in document.free_inputs if isinstance(i.type, TensorType) for n in i.type.shape}
    opened = [made for n in sorted(numbers) if (made := opened_document(document, n)) is not None and open_names(made)]
    assume(opened)
    try:
        written = derived(opened[0], seed % 2)
    except (MissingRuleError, UndecidedSizeError):
        return
    require_values(written, {"N": 1 + seed % 7})


def test_stablehlo_itself_puts_numbers_for_sizes() -> None:
    """Each function is called with arrays of one shape, also where its text is that of another."""
    document = tidu.trace(lambda x, y: (np.clip(x, 0.0, 1.0) ** 5, np.clip(y, 0.0, 1.0) ** 5), "f64[N]", "f64[2*N]")
    with make_ir_context():
        stablehlo.register_stablehlo_passes()
        module = ir.Module.parse(format_document(document, "mlir"))
        types = "{types=tensor<3xf64>,tensor<6xf64>}"
        passmanager.PassManager.parse(
            f"builtin.module(stablehlo-refine-arguments{types},stablehlo-refine-shapes,func.func(stablehlo-canonicalize-dynamism))"
        ).run(module.operation)
        text = module.operation.get_asm()
    assert "tensor<?" not in text
    x, y = np.linspace(-1.0, 2.0, 3), np.linspace(-1.0, 2.0, 6)
    text = re.sub(r".*@shape_assertion.*\n", "", text)  # which hold
    for result, value in zip(by_xla(text, [x, y]), tidu.evaluate(document, {"x": x, "y": y}).values(), strict=True):
        np.testing.assert_allclose(result, value)


def test_a_structural_zero_has_the_open_size() -> None:
    document = tidu.transpose(
        tidu.linearize(document_of({"x": "f64[N]", "y": "f64[2*N]"}, [{"op": "neg", "inputs": [1]}], 2), ["x", "y"])
    )
    document = tidu.materialize(document)
    assert document.head.outputs[0].value is None
    require_values(document, {"N": 3})
    require_round_trip(document)


# Bounds and names.


def test_bounds_are_asserted_and_read() -> None:
    document = document_of(
        {"x": "f64[N]", "y": "f64[N//4]"}, [{"op": "mul", "inputs": [0, 0]}], 2, {"N": {"min": 8, "max": 64, "multiple_of": 4}}
    )
    run = called(document)
    for n, problem in ((4, "N >= 8"), (10, "floordiv(N, 4) == N"), (68, "N <= 64")):
        with pytest.raises(ValueError, match=r"symbolic shape constraint .*") as error:
            run(np.ones(n), np.ones(n // 4))
        assert problem in str(error.value)
    require_values(document, {"N": 12}, run)
    (name,) = open_names(read_plainly(document)).values()
    assert name == Name("N", 8, 64, 4)


def test_shapes_that_disagree_are_refused_by_the_module() -> None:
    run = called(document_of({"x": "f64[N]", "y": "f64[N+1]"}, [{"op": "mul", "inputs": [0, 0]}], 2))
    with pytest.raises(ValueError, match=r"dimension size args\[1\].shape\[0\] \(= 3\) and the specification 'N \+ 1' \(= 4\)"):
        run(np.ones(3), np.ones(3))


def test_a_size_that_may_be_0_is_refused() -> None:
    with declaring({"N": Name("N", 0)}):
        document = squared("f64[N]")
    with pytest.raises(UnwrittenError, match=r"the size N may be 0, and those of jax\.export are at least 1; give it that bound"):
        format_document(document, "mlir")


@pytest.mark.parametrize("name", ["mod", "floordiv", "_", "__", "mod_", "if", "None", "N" * 190, "arg0", "c0", "size_N"])
def test_sizes_keep_any_name(name: str) -> None:
    nodes = [
        {"op": "broadcast_in_dim", "inputs": [1], "attrs": {"shape": [name, 3], "broadcast_dimensions": [0]}},
        {"op": "mul", "inputs": [0, 2]},
    ]
    document = document_of({"x": f"f64[{name},3]", "y": f"f64[{name}]"}, nodes, 3)
    require_round_trip(document)
    assert [i.type for i in read_plainly(document).head.inputs] == [i.type for i in document.head.inputs]
    require_values(document, {name: 2})


# Files.


@pytest.mark.parametrize("name", ["mean", "softmax", "gather", "convolution", "slices", "halves", "joined", "solutions"])
def test_what_a_module_runs_is_read_with_the_same_sizes(name: str) -> None:
    function, types = PROGRAMS[name]
    document = derived(tidu.trace(function, *types), 1)
    read = read_plainly(document)
    assert [(i.key, i.type) for i in read.head.inputs] == [(i.key, i.type) for i in document.head.inputs]
    assert [(o.key, o.type) for o in read.head.outputs] == [(o.key, o.type) for o in document.head.outputs]
    for n in few(SIZES, 2):
        sizes = {text: n + k for k, text in enumerate(sorted(open_names(document)))}
        fixed = tidu.specialize(document, size=sizes)
        rng = np.random.default_rng(n)
        values = {str(i.key): _drawn(rng, i.type) for i in fixed.free_inputs}
        for one, other in ((document, read), (derived(document, 1), derived(read, 1))):
            values |= {
                str(i.key): np.ones(i.type.shape) for i in tidu.specialize(one, size=sizes).free_inputs if str(i.key) not in values
            }
            due, told = tidu.evaluate(one, values), tidu.evaluate(other, values)
            for key, value in due.items():
                np.testing.assert_allclose(told[key], value, rtol=1e-10, atol=1e-12)


def test_roles_and_passes_come_back() -> None:
    linear = tidu.linearize(tidu.trace(PROGRAMS["mean"][0], *PROGRAMS["mean"][1]), ["x"])
    require_round_trip(linear, "mlir")
    require_round_trip(tidu.transpose(linear), "mlirbc")


def test_the_text_is_the_same_each_time() -> None:
    texts = {format_document(tidu.trace(attention, "f64[N,M,2]"), "mlir") for _ in range(3)}
    assert len(texts) == 1


# What JAX does not do.


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            squared("f64[max(M,N)]"),
            "graph 'f': JAX does not solve the shapes of arguments for the size M; give it a number first: ",
        ),
        (squared("f64[N//2]"), "graph 'f': JAX does not solve the shapes of arguments for the size N; give it a number first: "),
        (
            document_of({"x": "f64[N]"}, [{"op": "size", "inputs": [], "attrs": {"expression": "K", "dtype": "f64"}}], 0),
            "graph 'f': no argument says what the size K is; give it a number first: ",
        ),
        (
            document_of({"x": "c128[N]"}, [{"op": "fft", "inputs": [0], "attrs": {"fft_type": "FFT", "fft_lengths": ["N"]}}], 1),
            "graph 'f', node 0 (fft): fft of open sizes is nothing that JAX takes: Shape polymorphism for FFT with non-constant"
            " fft_length is not implemented for TPU and GPU; give one a number: ",
        ),
    ],
)
def test_what_jax_does_not_write_is_refused_in_a_line(document: Document, message: str, tmp_path: Path) -> None:
    for suffix in ("mlir", "mlirbc"):
        with pytest.raises(UnwrittenError) as error:
            tidu.save(document, tmp_path / f"f.{suffix}")
        assert str(error.value).startswith(message)
        assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())
