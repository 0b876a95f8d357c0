"""C with sizes as arguments: compiled once, it gives at each size what the document of that size gives."""

from __future__ import annotations

import ctypes
import json
import subprocess
from itertools import islice, product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import assume, given, settings

import tidu
from tests.c.compiled import STRICT, alike, compiled, program
from tests.c.test_primitives import REFUSED, documented
from tests.c.test_programs import CC
from tests.docs.blocks import ROOT
from tests.graphs.strategies import REAL, documents, seeds
from tests.lax.test_batching import drawn
from tests.programs import needs
from tests.sizes.opened import opened_document, opened_documents
from tests.sizes.test_evaluation import RECURRENT
from tests.sizes.test_primitives import WITHOUT, cases, derived
from tests.sizes.test_programs import derived as program_derivative
from tests.tiers import examples, few
from tidu_cli.adapters.c.module import Module
from tidu_cli.adapters.numpy.api import trace
from tidu_cli.api.evaluation import evaluate
from tidu_cli.checking.numeric.trials import of_operand, with_diagonal
from tidu_cli.errors import DocumentError, MissingRuleError, UndecidedSizeError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.frozen import replace
from tidu_cli.graph.open_sizes import open_names
from tidu_cli.lax.vocabulary import BUILTIN, vocabulary
from tidu_cli.runtime.sizing import specialized

NUMBERS = (1, 2, 3, 7)
MOST = 3000
"""As many elements of inputs are compared."""


def agree_at(document, run, number, values, **tolerance):
    """Compare what C gives with what evaluation of the document of this size, or of these sizes, gives."""
    sizes = number if isinstance(number, dict) else dict.fromkeys(open_names(document), number)
    fixed = specialized(document, sizes, vocabulary(document.cases))
    given = values(fixed)
    if sum(x.size for x in given) > MOST:
        return
    with np.errstate(all="ignore"):
        expected = evaluate(fixed, {str(i.key): x for i, x in zip(fixed.head.inputs, given, strict=True)}, engine="numpy")
    made = run(*given, sizes=[sizes[size["key"]] for size in run.described["sizes"]])
    for value, output in zip(made, fixed.head.outputs, strict=True):
        alike(value, expected[str(output.key)], output.type, (number, output.key), **tolerance)


def is_written(document):
    try:
        return bool(format_document(document, "c"))
    except DocumentError:
        return False


def orders(case):
    """The node alone, its reverse derivative and a forward one of that, as far as there are any that C is written of."""
    document = documented([case])
    for order in (0, 1, 2) if any(i.type.inexact for i in document.free_inputs) else (0,):
        try:
            made = derived(document, order)
        except (MissingRuleError, UndecidedSizeError):
            return
        if not is_written(made):
            return
        yield made


@CC
@pytest.mark.parametrize("name", [p.name for p in BUILTIN if p.name not in {*REFUSED, *WITHOUT}])
def test_primitives_and_their_derivatives(name, tmp_path):
    defined = bool(BUILTIN[name].evaluation.definition)  # by hundreds of operations, which compile for long
    for example, case, _ in few(cases(name), 1 if defined else 3):

        def values(fixed, example=example, case=case):
            rng, given = np.random.default_rng(3), []
            for k, i in enumerate(fixed.head.inputs):
                is_own = k < len(case.operands)
                x = drawn(rng, i.type, of_operand(example.within, k) if is_own else (-2.0, 2.0))
                given.append(np.asarray(with_diagonal(x, of_operand(example.diagonals, k)) if is_own else x))
            return given

        for order, document in enumerate(islice(orders(case), 2 if defined else 3)):
            run = compiled(document, tmp_path, "-O0")
            for number in NUMBERS:
                agree_at(document, run, number, values, least=bool(order))


def drawn_within(interval, seed):
    def values(fixed):
        rng = np.random.default_rng(seed)
        return [np.asarray(drawn(rng, i.type, interval)) for i in fixed.head.inputs]

    return values


def agree(document, numbers=NUMBERS, *flags, seed=0, interval=(0.5, 1.5), **options):
    """Compiled once, and run at all of these numbers."""
    document = tidu.materialize(document)
    with TemporaryDirectory() as folder:
        run = compiled(document, Path(folder), *flags, **options)
        for number in numbers:
            agree_at(document, run, number, drawn_within(interval, seed), least=1)


def agree_with_fixed(document, number):
    """Compare with the C of the document of this size."""
    with TemporaryDirectory() as folder:
        fixed = specialized(document, dict.fromkeys(open_names(document), number), BUILTIN)
        values = drawn_within((0.1, 0.5), 0)(fixed)
        made = compiled(document, Path(folder), "-O1")(*values, sizes=[number] * len(open_names(document)))
        for value, other, output in zip(made, compiled(fixed, Path(folder), "-O1")(*values), fixed.head.outputs, strict=True):
            alike(value, other, output.type, output.key)


@CC
@settings(max_examples=examples(40, check=6))
@given(documents(makers=REAL, dtypes=("f64",)), seeds)
def test_random_programs_and_their_derivatives(document, seed):
    document = tidu.materialize(document)
    opened = opened_documents(document)
    assume(opened)
    made, number = opened[0]
    for order in (0, 1, 2):
        try:
            open_one = program_derivative(made, order)
        except (MissingRuleError, UndecidedSizeError):
            return
        agree(open_one, (number, *NUMBERS[:-1]), "-O0", seed=seed)


@CC
@pytest.mark.parametrize("name", ["mlp", "softmax", "logsumexp", "logistic_regression/loss", "affine"])
def test_samples_and_their_derivatives(name):
    document = tidu.materialize(tidu.load(ROOT / "samples" / f"{name}.json"), inline=True)
    sizes = {n for i in document.free_inputs for n in getattr(i.type, "shape", ())}
    for number in few(sorted(sizes), 2):
        made = opened_document(document, number)
        if made is not None and open_names(made):
            for order in (0, 1, 2):
                derivative = program_derivative(made, order)
                agree(derivative, (number, *NUMBERS), "-O1", interval=(0.1, 0.5))
                if order == 1:
                    agree_with_fixed(derivative, number)


@CC
@pytest.mark.parametrize("change", [
    lambda f: f,
    lambda f: tidu.grad(f, wrt=["w", "h", "x"]),
    lambda f: tidu.hvp(f, wrt=["w"]),
    lambda f: tidu.jacobian(f, wrt=["h"]),
    lambda f: tidu.hessian(f, wrt=["h"]),
    lambda f: tidu.materialize(tidu.grad(f, wrt=["w"]), recompute=3),
])  # fmt: skip
def test_a_loop_of_open_length_and_batch(change, tmp_path):
    path = tmp_path / "rnn.json"
    path.write_text(json.dumps(RECURRENT))
    document = change(tidu.load(path))
    agree(document, [{"B": b, "T": t} for b, t in product((1, 2, 3), (1, 2, 7))], "-O1", interval=(-1, 1))


def shrunk(x):
    """A loop that ends by a condition, and a branch, over an array."""
    x = tidu.while_loop(lambda x: np.sum(x * x) > 1, lambda x: x / 2 + np.sin(x) / 8, x)
    return tidu.cond(np.max(x) > 0.3, lambda x: np.sort(x) * 2, lambda x: np.cumsum(x[::-1]), x)


def many(x):
    """More statements than a function of C has, within a loop, too."""
    for k in range(300):
        x = np.sin(x) + x[::-1] if k % 100 == 0 else np.sin(x)
    return tidu.scan(lambda c, _: (np.cos(c) + np.cumsum(c), c), x, length=3)


def windows(x):
    """Whose sizes are quotients."""
    return np.sum(np.stack([x[::2][: x.shape[0] // 2], x[1::2]]), 0), np.concatenate([x[: x.shape[0] // 3], x, np.ones(2)])


FUNCTIONS = [
    (shrunk, "f64[N]"),
    (many, "f64[N]"),
    (windows, "f64[N]"),
    (lambda x, y: x @ y, "f64[N,M]", "f64[M,2*N+1]"),
    (lambda x, y: x @ y.T @ y, "f32[4,N]", "f32[M,N]"),
    (lambda x, y: np.swapaxes(x, -1, -2) @ y, "c128[B,N,3]", "c128[B,N,N]"),
    (lambda x: np.linalg.solve(x @ np.swapaxes(x, -1, -2) + 3 * np.eye(3), x), "f64[N,3,3]"),
    (lambda x: np.reshape(x.T, (-1, 2))[1:] * np.arange(x.shape[0] * 3 - 1)[:, None], "f32[N,6]"),
    (lambda x: np.fft.fft(x, axis=1).real, "f64[N,5]"),
]
WRITTEN = FUNCTIONS[1:]


@CC
@pytest.mark.parametrize("f", FUNCTIONS, ids=range(len(FUNCTIONS)))
def test_functions(f):
    f, *types = f
    document = trace(f, *types)
    sizes = [dict(zip(sorted(open_names(document)), numbers, strict=False)) for numbers in product((3, 1, 2, 17), repeat=3)]
    slope = tidu.grad if f is not shrunk else tidu.jvp
    for made in (document, slope(trace(lambda *x: sum(np.sum(y.real) for y in flat(f(*x))), *types))):
        agree(made, few({str(n): n for n in sizes}.values(), 12), "-O1", interval=(0.1, 0.9))


def flat(values):
    return [v for value in values for v in flat(value)] if isinstance(values, tuple) else [values]


BOUNDED = {"N": {"min": 8, "max": 64, "multiple_of": 8}, "M": {"min": 0}}
EXPRESSIONS = [
    "(M-N)//(M+1)+64", "(M-N)%(M+1)", "min(M-9,N-40)//3+20", "min(M-9,N-40)%3", "max(M-N,N-M,0)", "min(N//8,M)", "7*N-3",
    "3*(N//8)", "N*N+M", "7*N*N*M+2*(N//8)*N", "max(N-20,0)//3*2", "(3*N+M*N)%5",
]  # fmt: skip


def bounded(name="bounded"):
    """Two arrays of bounded sizes, the first of which is the second in the inputs, and sizes as numbers."""
    attrs = [{"expression": text, "dtype": "i64"} for text in EXPRESSIONS]
    document = {
        "tidu": 1,
        "sizes": BOUNDED,
        "graphs": [{
            "name": name,
            "inputs": [{"key": "m", "type": "f64[M]"}, {"key": "n", "type": "f64[N]"}],
            "nodes": [
                {"op": "reduce_sum", "inputs": [0], "attrs": {"axes": [0]}},
                {"op": "cumsum", "inputs": [1], "attrs": {"axis": 0}},
                {"op": "mul", "inputs": [2, 2]},
                *({"op": "size", "inputs": [], "attrs": a} for a in attrs),
            ],
            "outputs": [{"key": f"y{k}", "value": 2 + k} for k in range(3 + len(attrs))],
        }],
    }  # fmt: skip
    return parse_document(json.dumps(document).encode(), "bounded")[0]


@CC
def test_sizes_are_computed_exactly(tmp_path):
    """Also of differences that are negative, of quotients of these, and of arrays without elements."""
    document = bounded()
    run = compiled(document, tmp_path, "-O1")
    assert [(s["key"], s["name"]) for s in run.described["sizes"]] == [("M", "n_M"), ("N", "n_N")]
    for n, m in product((8, 16, 32, 40, 64), (0, 1, 5)):
        agree_at(document, run, {"M": m, "N": n}, drawn_within((0, 1), 0))


@CC
def test_slices_from_a_known_place_on_compile_without_warnings(tmp_path):
    document = {
        "tidu": 1,
        "graphs": [{
            "name": "f",
            "inputs": [{"key": "x", "type": "f64[2*N]"}],
            "nodes": [
                {"op": "constant", "inputs": [], "attrs": {"value": {"type": "i64[]", "data": [0]}}},
                {"op": "dynamic_slice", "inputs": [0, 1], "attrs": {"slice_sizes": ["N"]}},
            ],
            "outputs": [{"key": "y", "value": 2}],
        }],
    }  # fmt: skip
    document = parse_document(json.dumps(document).encode(), "f")[0]
    agree_at(document, compiled(document, tmp_path), 3, drawn_within((0, 1), 0))


@CC
def test_sizes_that_are_not_admitted_give_a_status(tmp_path):
    run = compiled(bounded(), tmp_path, "-O1")
    work, shapes, function = (getattr(run.functions, f"bounded{part}") for part in ("_work", "_shapes", ""))
    work.restype = ctypes.c_size_t
    void, axes = [None] * (len(run.described["inputs"]) + len(run.described["outputs"]) + 1), (ctypes.c_size_t * 9)()
    hostile = [(1, 0), (1, 4), (1, 12), (1, 72), (2**64 - 8, 8), (2**61, 8), (2**63, 8), (1, 2**64 - 8), (1, 2**62)]
    for m, n in hostile:
        sizes = ctypes.c_size_t(m), ctypes.c_size_t(n)
        assert (work(*sizes), shapes(*sizes, axes)) == (0, 2), (m, n)
        assert function(*sizes, *void) == 2
    assert work(ctypes.c_size_t(0), ctypes.c_size_t(8)) > 0


@CC
def test_products_of_sizes_never_wrap(tmp_path):
    """A workspace of 2**64 + 24 bytes would be one of 24."""
    document = trace(lambda x: np.cumsum(np.cumsum(np.cumsum(x, 0), 1) * 2, 2).sum(), "f64[A,B,C]")
    run = compiled(document, tmp_path, "-O1")
    name = run.described["function"]
    work = getattr(run.functions, f"{name}_work")
    work.restype = ctypes.c_size_t
    assert work(*map(ctypes.c_size_t, (2, 3, 4))) > 24
    for sizes in ((2**20, 2**20, 2**20), (2**30, 2**30, 16), (3, 2**62, 2**62), (2**61, 1, 1), (2**32, 2**32, 1)):
        assert work(*map(ctypes.c_size_t, sizes)) == 0
        assert getattr(run.functions, name)(*map(ctypes.c_size_t, sizes), None, None, None) == 2


@CC
def test_names_of_sizes_and_graphs_mean_nothing_else(tmp_path):
    """Not even where a variable has the name of a function within the file."""
    names = ["int", "_0", "s_0", "N_part_0", "N", "n" * 190, "n" * 189 + "m", "size_t", "work", "k_admitted", "w_f64", "n_N"]

    def f(*x):
        y = x[0] * 2
        for _ in range(260):
            y = np.sin(y)
        return np.sum(y) + sum(np.sum(y) for y in x) + np.arange(x[0].shape[0] * 2)

    document = tidu.materialize(trace(f, *(f"f64[{','.join(names[k : k + 4])}]" for k in range(0, len(names), 4))))
    for name in ("n_N", "k_admitted"):
        named = replace(document, graphs=(replace(document.head, name=name),))
        run = compiled(named, tmp_path, "-O0")
        assert [s["key"] for s in run.described["sizes"]] == names
        agree_at(named, run, 1, drawn_within((0, 1), 0), least=1)


@CC
@pytest.mark.parametrize("dtype", ["u8", "u32", "u64"])
def test_remainders_of_numbers_without_signs(dtype):
    """A compiler would warn of what is below 0 there."""
    document = trace(lambda x, y: (x // 3, x % 7, x % y), f"{dtype}[N]", f"{dtype}[N]")
    agree(document, NUMBERS, "-O1", interval=(0, 9))


@CC
def test_nothing_is_read_or_written_beyond_the_workspace(tmp_path):
    """A program whose workspaces have just the elements that are asked for, and which ends where C does not say what happens."""
    flags = ("-O0", "-fsanitize=undefined,address", "-fno-sanitize-recover=all")
    calls = []
    for (f, *types), number in zip(WRITTEN, (1, 9, 5, 11, 2, 3, 4, 7), strict=True):
        document = tidu.materialize(tidu.grad(trace(lambda *x, f=f: sum(np.sum(y.real) for y in flat(f(*x))), *types)))
        sizes = {name.text: number for name in Module(document, None).sizes.names}
        calls.append((document, drawn_within((0.1, 0.9), 0)(specialized(document, sizes, BUILTIN)), sizes))
    main = program(tmp_path, calls, "cc", *STRICT, *flags)
    done = subprocess.run([str(main)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


def test_what_needs_a_number_is_refused_by_name(tmp_path):
    with pytest.raises(DocumentError, match=r"node \d+ \(fft\): needs a number, and the size N is open; .*size={'N': 32}"):
        tidu.save(trace(np.fft.fft, "c128[N]"), str(tmp_path / "f.c"))
    assert not list(tmp_path.iterdir())


@needs("clang")
@pytest.mark.check
@pytest.mark.parametrize("f", FUNCTIONS, ids=range(len(FUNCTIONS)))
def test_clang(f):
    """At another level, too, and with floats for doubles."""
    f, *types = f
    document = trace(f, *types)
    numbers = [dict.fromkeys(open_names(document), n) for n in (1, 2, 9)]
    agree(document, numbers, "-O3" if f is not many else "-O1", interval=(0.1, 0.9), cc="clang")
    if f is not shrunk and "c128" not in str(types):  # which takes another number of steps
        fixed = specialized(document, numbers[1], BUILTIN)
        values = drawn_within((0.1, 0.9), 0)(tidu.materialize(fixed))
        with TemporaryDirectory() as folder:
            made = compiled(document, Path(folder), "-O1", cc="clang", real="float")(*values, sizes=[2] * len(numbers[1]))
            for value, other in zip(made, compiled(fixed, Path(folder), "-O1", real="float")(*values), strict=True):
                np.testing.assert_allclose(value, other, 1e-4, 1e-4)


LIBRARIES = {"blas": True, "lapack": True}


@needs("cc", "openblas")
@pytest.mark.parametrize(("called", "f", "types"), [
    ("cblas_dgemm", lambda x, y: x @ y, ["f64[N,5]", "f64[5,M]"]),
    ("cblas_dgemm", lambda x, y: np.swapaxes(x, 1, 2) @ y[:, :, ::-1], ["f64[B,N,5]", "f64[B,N,M]"]),
    ("cblas_sgemv", lambda x, y: x @ y + y @ x, ["f32[N,N]", "f32[N]"]),
    ("dtrsm_", lambda x, y: np.linalg.solve(x @ np.swapaxes(x, 1, 2) + 40 * np.eye(33), y), ["f64[B,33,33]", "f64[B,33,N]"]),
    ("", lambda x, y: np.linalg.cholesky(x @ x.T + 3 * np.eye(x.shape[0])) * y, ["f64[N,4]", "f64[N,N]"]),
])  # fmt: skip
def test_calls_of_libraries(called, f, types):
    document = trace(f, *types)
    assert called in format_document(document, "c", **LIBRARIES).decode()
    names = sorted(open_names(document))
    for made in (document, tidu.grad(trace(lambda *x: np.sum(f(*x)), *types))):
        numbers = [dict(zip(names, n, strict=False)) for n in ((1, 1, 1), (3, 2, 2), (2, 7, 9))]
        agree(made, numbers, "-O0", link=["-lopenblas"], **LIBRARIES)


@needs("cc", "openblas")
def test_sizes_beyond_integers_of_libraries_are_not_admitted(tmp_path):
    document = trace(lambda x, y: x @ y, "f64[N,5]", "f64[5,5]")
    for options, admitted in (({}, True), ({"blas": True}, False)):
        run = compiled(document, tmp_path, "-O0", link=["-lopenblas"], **options)
        work = getattr(run.functions, f"{run.described['function']}_work")
        assert bool(work(ctypes.c_size_t(2**31))) is admitted


@pytest.mark.parametrize("f", [np.linalg.eigvalsh, lambda x: np.linalg.svd(x)[1]])
def test_eigenvalues_of_an_open_size_are_refused_by_name(f):
    with pytest.raises(DocumentError, match=r"node \d+ \((eigh|svd)\): needs a number, and the size N is open"):
        format_document(trace(f, "f64[N,N]"), "c", **LIBRARIES)
