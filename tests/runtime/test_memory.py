"""Memory: estimates follow liveness, and what would not fit is refused before it starts."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.peaks import peak
from tests.runtime.graphs import Sketch
from tidu_cli.errors import EvaluationError
from tidu_cli.graph.keys import Key
from tidu_cli.limits import _cgroup_limits, format_size, machine_memory, parse_size
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.runtime.memory import check_memory, estimate_memory
from tidu_cli.runtime.plans.program import compile_graph


def chain(length, n=1000):
    s = Sketch(x=f"f64[{n}]")
    y = 0
    for _ in range(length):
        y = s.apply("sin", y)
    return s.graph(y=y)


def test_a_chain_takes_two_values_at_a_time_however_long():
    # input, operand and result; the last result once more as it is handed over
    assert estimate_memory(compile_graph(chain(1))).peak == 3 * 8000
    assert estimate_memory(compile_graph(chain(50))).peak == 3 * 8000


def test_values_kept_for_later_count():
    s = Sketch(x="f64[1000]")
    kept = [s.apply("sin", 0)]
    for _ in range(9):
        kept.append(s.apply("sin", kept[-1]))
    total = kept[0]
    for v in kept[1:]:
        total = s.apply("add", total, v)
    assert estimate_memory(compile_graph(s.graph(total=total))).peak == (1 + 10 + 1) * 8000


def test_values_let_go_of_do_not_count():
    s = Sketch(x="f64[1000]")
    d = s.apply("dot_general", s.apply("sin", 0), s.apply("cos", 0), dimension_numbers=[[[0], [0]], [[], []]])
    wide = s.apply("broadcast_in_dim", d, shape=[3000], broadcast_dimensions=[])
    graph = s.graph(y=s.apply("exp", wide))
    assert estimate_memory(compile_graph(graph)).peak == 8000 + 2 * 24000  # neither sin x nor cos x


def test_the_largest_values_are_named():
    s = Sketch(x="f64[]")
    big = s.apply("broadcast_in_dim", 0, shape=[1000, 1000], broadcast_dimensions=[])
    graph = s.graph(y=s.apply("reduce_sum", s.apply("exp", big), axes=[0, 1]))
    estimate = estimate_memory(compile_graph(graph))
    assert estimate.peak == 8 + 2 * 8_000_000
    assert {what for _, what in estimate.largest[:2]} == {
        "graph 'f', node 0 (broadcast_in_dim) f64[1000,1000]",
        "graph 'f', node 1 (exp) f64[1000,1000]",
    }


def test_refusal_comes_before_the_run_in_one_line():
    s = Sketch(x="f64[]")
    big = s.apply("broadcast_in_dim", 0, shape=[2**40], broadcast_dimensions=[])
    graph = s.graph(y=s.apply("reduce_sum", s.apply("exp", big), axes=[0]), z="f64[3]")
    expected = (
        "evaluation would take about 16 TiB, more than the limit of 1 GiB; largest values: "
        "graph 'f', node 0 (broadcast_in_dim) f64[1099511627776] 8 TiB, graph 'f', node 1 (exp) f64[1099511627776] 8 TiB, "
        "output z f64[3] 24 B; evaluate fewer outputs, or allow more with max_memory=, or os.environ['TIDU_MAX_MEMORY']"
    )
    with pytest.raises(EvaluationError, match=re.escape(expected)):
        evaluate(graph, {Key("x"): 1.0}, max_memory=2**30)
    with pytest.raises(EvaluationError, match="more than the limit of"):
        evaluate(graph, {Key("x"): 1.0})


def test_what_fits_is_let_through():
    program = compile_graph(chain(20))
    check_memory(program, 3 * 8000)
    check_memory(program, None)
    with pytest.raises(EvaluationError):
        check_memory(program, 3 * 8000 - 1)


def test_the_estimate_is_not_below_what_a_run_takes():
    s = Sketch(x="f64[100000]")
    a, b = s.apply("sin", 0), s.apply("cos", 0)
    graph = s.graph(y=s.apply("add", s.apply("mul", a, b), s.apply("exp", a)), x=0)
    program = compile_graph(graph)
    x = np.ones(100000)
    program.run({Key("x"): x})
    assert peak(lambda: program.run({Key("x"): x})) + x.nbytes <= estimate_memory(program).peak + 50_000


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0), ("4096", 4096), ("512M", 2**29), ("2G", 2**31), ("1.5GiB", 3 * 2**29), ("64MB", 64 * 10**6),
        ("10 kb", 10**4), ("1k", 1024), ("7B", 7), ("0.5T", 2**39),
    ],
)  # fmt: skip
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "M", "-1", "1.G", "1X", "1iB", "1e9", "1" * 30, "nan"])
def test_malformed_sizes(text):
    with pytest.raises(EvaluationError, match="malformed size"):
        parse_size(text)


def test_sizes_for_people():
    assert [format_size(n) for n in (0, 999, 2**20, 3 * 2**29, 2**60, 1023 * 2**20)] == [
        "0 B", "999 B", "1 MiB", "1.5 GiB", "1024 PiB", "1023 MiB",
    ]  # fmt: skip


def test_the_lesser_of_all_limits_counts(tmp_path):
    membership = tmp_path / "cgroup"
    membership.write_text("12:cpu:/a\n3:memory:/job\n0::/user/inner\n")
    for folder, name, text in [
        ("memory/job", "memory.limit_in_bytes", "9223372036854771712"),
        ("user", "memory.max", "3000"),
        ("user/inner", "memory.max", "max"),
        ("memory", "memory.limit_in_bytes", "5000"),
    ]:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / name).write_text(f"{text}\n")
    assert sorted(_cgroup_limits(membership, tmp_path)) == [3000, 5000, 9223372036854771712]
    assert list(_cgroup_limits(tmp_path / "none", tmp_path)) == []
    assert machine_memory() is None or machine_memory() > 0
