"""Programs in C: random ones and their derivatives, samples, loops; clean under sanitizers; whatever their names are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings

import tidu
from tests.c.compiled import alike, compiled, program
from tests.control_flow.strategies import looping
from tests.docs.blocks import ROOT
from tests.graphs.derived import derivatives
from tests.graphs.strategies import REAL, documents, seeds
from tests.lax.sampling.samples import by_op
from tests.programs import needs
from tests.tiers import examples, few
from tidu_cli.adapters.c.module import MARK, Module
from tidu_cli.adapters.c.names import identifier, unique
from tidu_cli.adapters.c.views import CTYPES
from tidu_cli.adapters.numpy.api import trace
from tidu_cli.api.evaluation import evaluate
from tidu_cli.checking.numeric.trials import draw
from tidu_cli.errors import DocumentError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document, write_document
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.graph import CaseTable, Document, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.limits import limited_steps
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

CC = needs("cc")


def agree(document, values, *flags, rounding=64, **options):
    """Compares the C of a document with what evaluation gives, up to some units in the last place."""
    document = materialize(document)
    with TemporaryDirectory() as folder, np.errstate(all="ignore"):
        run = compiled(document, Path(folder), *flags, **options)
        expected = evaluate(document, {str(i.key): x for i, x in zip(document.head.inputs, values, strict=True)})
        for made, output in zip(run(*values), document.head.outputs, strict=True):
            alike(made, expected[str(output.key)], output.type, output.key, rounding)


def values_for(document, seed, interval=(0.1, 0.9)):
    rng = np.random.default_rng(seed)
    return [np.asarray(draw(rng, i.type, interval)) for i in materialize(document).head.inputs]


def is_plain(document):
    """Whether all types in a document have C."""
    types = [t for case in cases_within(document.cases.cases) for t in (*case.operands, *case.results)]
    types += [i.type for graph in document.graphs for i in graph.inputs]
    return all(isinstance(t, TensorType) and t.dtype in CTYPES for t in types)


@CC
@settings(max_examples=examples(80, check=20))
@given(documents(makers=REAL, dtypes=("f64", "f32"), shapes=((), (3,), (2, 3))), seeds)
def test_random_documents(document, seed):
    agree(document, values_for(document, seed))


@CC
@settings(max_examples=examples(60, check=10))
@given(documents(makers=REAL, dtypes=("f64",), max_graphs=2, max_nodes=12), seeds)
def test_derivatives_of_random_documents(document, seed):
    for number, derivative in enumerate(derivatives(document)):
        agree(derivative, values_for(derivative, seed), *["-O2"] * number)


@CC
@settings(max_examples=examples(60, check=12))
@given(looping(), seeds)
def test_random_loops(document, seed):
    if is_plain(document):
        agree(document, values_for(document, seed))


WITH_SAMPLES = [p.name for p in BUILTIN if p.domain.arity != 0]


def taken(sample):
    types = (*sample.case.operands, *sample.case.results)
    return all(isinstance(t, TensorType) and t.dtype in CTYPES for t in types)


@CC
@pytest.mark.check
@pytest.mark.parametrize("name", WITH_SAMPLES)
def test_samples(name, tmp_path):
    """All ranks, empty arrays, and the attrs that examples leave out."""
    from tests.c.test_primitives import check, is_written

    own = [sample for sample in by_op().get(name, []) if taken(sample)]
    empty = [sample for sample in own if any(0 in np.shape(x) for x in sample.operands)]
    most = 3 if BUILTIN[name].evaluation.definition else 20  # definitions are of hundreds of operations, which compile for long
    chosen = {id(s): s for s in (*few(own, most), *few(empty, 3)) if is_written(s.case)}.values()
    if chosen:
        check([s.case for s in chosen], [list(s.operands) for s in chosen], tmp_path, "-O0")


SAMPLES = sorted(path.name for path in (ROOT / "samples").glob("*.json"))


@CC
@pytest.mark.parametrize("name", SAMPLES)
def test_samples_of_documents_and_their_gradients(name):
    document = parse_document((ROOT / "samples" / name).read_bytes(), name)[0]
    if not is_plain(document):
        with pytest.raises(DocumentError, match="C is written of"):
            format_document(document, "c")
        return
    agree(document, values_for(document, 1), "-O2")
    floats = [i.key for i in document.head.inputs if i.type.inexact]
    gradient = transpose(linearize(document, floats))
    agree(gradient, values_for(gradient, 1), "-O2")


LOOPS = ["loop", "loops_nested", "own_ops", "own_derivative", "own_loop", "bindings", "constants", "structural_zeros", "no_nodes"]


@CC
@pytest.mark.parametrize("name", LOOPS)
def test_documents_of_the_format(name):
    document = parse_document((ROOT / "samples" / "conformance" / "valid" / f"{name}.json").read_bytes(), name)[0]
    if is_plain(document):
        agree(document, values_for(document, 1))


def chain(n, shape=()):
    """y = sin(sin(x) x) x …, of n nodes, each of which the one after the next reads, too."""
    table = CaseTable(BUILTIN)
    type_ = TensorType("f64", shape)
    builder = GraphBuilder(table, [Input(Key("x"), type_)])
    case = {
        op: table.intern(BUILTIN.case(op, BUILTIN.parse_attrs(op, {}), None, [type_] * k)) for op, k in (("sin", 1), ("mul", 2))
    }
    value = before = 0
    for k in range(n):
        value, before = builder.append(case["mul" if k % 2 else "sin"], [value, before][: 1 + k % 2]), value
    return Document((builder.build("chain", [Output(Key("y"), value, type_)]),), table)


@CC
def test_many_numbers_are_functions_of_bounded_length(tmp_path):
    document = chain(3001)
    agree(document, [np.array(0.7)], "-O0")
    source = format_document(document, "c").decode()
    bodies = re.split(r"\n}\n", source)
    assert max(len(re.findall(r"const double v", body)) for body in bodies) <= 500
    work = int(re.search(r"chain_WORK_BYTES (\d+)L", source)[1])
    assert work <= 32  # places are used again


@CC
@pytest.mark.parametrize(
    ("names", "dtypes"),
    [
        (
            """add mul neg integer_pow div rem abs convert_element_type shift_left gather scatter sort pad reduce_window_max
            conv_general_dilated scan while dynamic_update_slice qr digamma""",
            ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64"),
        ),
        ("div pow sqrt asin fft cholesky qr scatter-add sort", ("c64", "c128")),
        ("add pow nextafter reduce_precision scatter-add convert_element_type", ("f16", "bf16")),
    ],
    ids=["reals", "complex", "halves"],
)
def test_nothing_is_undefined(names, dtypes, tmp_path):
    """A program that calls a function of many operations, and would end where C does not say what happens."""
    from tests.c.test_primitives import documented
    from tests.c.test_primitives import examples as examples_of

    flags = ("-O1", "-fsanitize=undefined,address", "-fno-sanitize-recover=all")
    of = {name: [one for one in examples_of(name) if one[0].operands[0].dtype in dtypes] for name in names.split()}
    cases, operands = zip(*[one for chosen in of.values() for one in few(chosen, 6 if "f64" in dtypes else 3)], strict=True)
    main = program(tmp_path, [(documented(cases), [x for xs in operands for x in xs])], "cc", *flags)
    done = subprocess.run([str(main)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


@CC
def test_qr_of_few_matrices_stays_within_the_workspace(tmp_path):
    """Of fewer matrices than these have columns."""
    document = materialize(trace(lambda x: np.linalg.qr(x), "f64[1,5,3]"))
    flags = ("-O0", "-fsanitize=undefined,address", "-fno-sanitize-recover=all")
    main = program(tmp_path, [(document, values_for(document, 1))], "cc", *flags)
    done = subprocess.run([str(main)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


HOSTILE = [
    'x"; system("rm"); //',
    "*/ evil() /*",
    "double",
    "??/",
    "a\\",
    "a\nb",
    "é",
    "",
    "x" * 10_000,
    "x" * 10_000 + "y",
    "w_f64",
    "work",
    "%s",
    "{0}",
]


@CC
def test_names_never_become_code(tmp_path):
    table = CaseTable(BUILTIN)
    type_ = TensorType("f64")
    builder = GraphBuilder(table, [Input(Key(name), type_) for name in HOSTILE])
    outputs = [Output(Key(name), k, type_) for k, name in enumerate(HOSTILE)]
    for graph_name in ("int", "main", "*/ evil(); /*", "sin", "", "x" * 10_000, "1", "NAN", "in_x", "w", "describe", "printf"):
        document = Document((builder.build(graph_name, outputs),), table)
        run = compiled(document, tmp_path)
        values = [np.array(float(k)) for k in range(len(HOSTILE))]
        assert [float(x) for x in run(*values)] == list(range(len(HOSTILE)))
        assert [i["key"] for i in run.described["inputs"]] == [str(Key(name)) for name in HOSTILE]
        text = run.source.read_text()
        code = re.sub(r'"(\\.|[^"\\])*"|text\[\] = \{[^}]*\}', "", text)
        assert not re.search(r"\b(system|rm)\b|evil *\(\)", code)
        assert text.isascii()


def test_identifiers_mean_nothing_else():
    assert [identifier(n) for n in ("f", "f@-1", "loss", "int", "sinf", "strange", "X", "v1", "stdin", "conjf", "snprintf")] == [
        "f", "f_1", "loss", "tidu_int", "tidu_sinf", "tidu_strange", "tidu_X", "tidu_v1", "tidu_stdin", "tidu_conjf",
        "tidu_snprintf",
    ]  # fmt: skip
    assert unique("in_", ["a", "a", "a_2", "b.c", "b c"]) == ["in_a", "in_a_2", "in_a_2_2", "in_b_c", "in_b_c_2"]


def test_text_is_the_same_in_every_process():
    path = ROOT / "samples" / "mlp.json"
    document = parse_document(path.read_bytes(), "mlp")[0]
    wrt = str(document.head.inputs[0].key)
    command = [sys.executable, "-m", "tidu_cli", "vjp", str(path), "--wrt", wrt, "--format", "c"]
    texts = [
        subprocess.run(
            command, capture_output=True, check=True, cwd=ROOT, env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        ).stdout
        for seed in ("1", "2")
    ]
    assert texts[0] == texts[1] and texts[0].startswith(MARK.encode())


@CC
def test_real_float_has_no_double(tmp_path):
    document = parse_document((ROOT / "samples" / "rosenbrock.json").read_bytes(), "rosenbrock")[0]
    run = compiled(document, tmp_path, real="float")
    assert "double" not in run.source.read_text() + run.source.with_suffix(".h").read_text()
    assert {i["dtype"] for i in run.described["inputs"]} == {"f32"}
    values = [x.astype(np.float32) for x in values_for(document, 1)]
    expected = evaluate(document, {str(i.key): x.astype(float) for i, x in zip(document.head.inputs, values, strict=True)})
    for made, output in zip(run(*values), document.head.outputs, strict=True):
        np.testing.assert_allclose(made, expected[str(output.key)], 1e-5)


def test_nothing_is_written_where_something_is_refused(tmp_path):
    document = trace(lambda z: np.linalg.eig(z)[0], "c128[2,2]")
    with pytest.raises(DocumentError, match=r"graph '.*': node .* \(eig\): C has no eig"):
        write_document(document, str(tmp_path / "f.c"), "c")
    assert not list(tmp_path.iterdir())


def test_a_header_of_somebody_else_stays(tmp_path):
    (tmp_path / "f.h").write_text("/* mine */")
    with pytest.raises(DocumentError, match=r"f\.h: would be replaced, too, and tidu did not write it; give another name"):
        write_document(chain(3), str(tmp_path / "f.c"), "c")
    assert [p.name for p in tmp_path.iterdir()] == ["f.h"] and (tmp_path / "f.h").read_text() == "/* mine */"
    (tmp_path / "f.h").unlink()
    write_document(chain(3), str(tmp_path / "f.c"), "c")
    write_document(chain(4), str(tmp_path / "f.c"), "c")  # its own


def test_loops_and_views():
    """A chain of elementwise operations is one loop; what only moves elements takes none."""
    source = format_document(chain(9, (4, 5)), "c").decode()
    assert source.count("for (") == 1 and "i0 < 20" in source
    assert Module(chain(9), None).unit.n_statements == 9


@CC
def test_what_is_read_at_another_place_comes_from_memory():
    """A loop has only the element at hand that it is at, though the shape is the same."""
    document = trace(lambda x: np.sin(x).T * np.cos(x) + np.exp(np.cos(x))[::-1], "f64[3,3]")
    agree(document, [np.arange(9.0).reshape(3, 3)])


@CC
def test_sines_and_cosines_of_one_value_stand_side_by_side(tmp_path):
    """Compilers make one call of the two, though a derivative asks for the second long after the first."""
    document = materialize(transpose(linearize(chain(2001), [Key("x")])))
    agree(document, values_for(document, 1), "-O0")
    lines = [line.strip() for line in format_document(document, "c").decode().splitlines() if re.search(r"\b(sin|cos)\(", line)]
    arguments = [re.sub(r".*\b(?:sin|cos)\((.*)\);", r"\1", line) for line in lines]
    assert len(lines) == 2001 and arguments[:-1:2] == arguments[1::2]  # the last sine is not asked for
    shaped = trace(lambda x: np.cos(x) * np.sum(np.exp(np.sin(x))), "f64[3]")
    agree(shaped, [np.arange(3.0)])


@CC
def test_a_loop_that_never_ends_is_stopped(tmp_path):
    """Also within another loop. Steps count together, and just as many are done as are allowed."""

    def counted(x, n):
        return tidu.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] + 1, c[1]), (x, n))[0]

    def nested(x, n):
        for _ in range(300):  # so that it is functions of bounded length
            x = np.sin(x)
        return counted(tidu.scan(lambda c, _: (counted(c, n) - n, c), x, length=3)[0], n)

    document = materialize(trace(nested, "f64[]", "f64[]"))
    run = compiled(document, tmp_path, "-O1", "-DTIDU_MAX_STEPS=40")
    assert float(run(np.array(0.0), np.array(10.0))[0]) == 10
    for steps, status in ((np.array(10.5), 1), (np.array(np.inf), 1)):
        with pytest.raises(AssertionError, match=f"^status {status}$"):
            run(np.array(0.0), steps)
    for allowed, text in ((None, "#define TIDU_MAX_STEPS 1000000\n"), (7, "#define TIDU_MAX_STEPS 7\n")):
        with limited_steps(allowed):
            assert text in format_document(document, "c").decode()
    assert "TIDU_MAX_STEPS" not in format_document(chain(3), "c").decode()


@CC
def test_products_of_all_widths():
    """Eight columns at a time and those that are left, in batches, too; the right factor copied where that pays."""
    rng = np.random.default_rng(0)
    for n, dtype in ((1, float), (5, float), (8, np.int32), (9, np.float32), (10, complex), (19, float)):
        x, y = (np.asarray(10 * (rng.normal(size=shape) + 1j * rng.normal(size=shape))) for shape in ((2, 11, 6), (2, 6, n)))
        x, y = (a if dtype is complex else a.real.astype(dtype) for a in (x, y))

        def products(x, y):
            turned = np.swapaxes(y, -1, -2).copy() * 2
            several = np.tensordot(x, y, [[2, 0], [1, 0]]), np.tensordot(x, turned[0], [[2], [1]])
            return x @ y, x @ np.swapaxes(turned, -1, -2), x[0] @ y[1, ::-1], *several

        agree(trace(products, x, y), [x, y], "-O2")
    few_rows, many_rows = (
        format_document(trace(lambda x, y: x @ y.T, np.ones((n, 6)), np.ones((17, 6))), "c").decode() for n in (3, 9)
    )
    assert many_rows.count("double a[8]") == many_rows.count("double a[1]") == 1
    assert "w_f64" in many_rows and "w_f64" not in few_rows
