"""The graphs that benchmarks run on are what they claim, and the measuring program runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.waiting import LIMIT
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.keys import Key
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def generated(shape, n, tmp_path, suffix="json", seed=0):
    out = tmp_path / f"{shape}-{n}-{seed}.{suffix}"
    command = [sys.executable, BENCHMARKS / "generate.py", shape, str(n), out, "--seed", str(seed)]
    subprocess.run(command, check=True, timeout=LIMIT)
    return out.read_bytes()


@pytest.mark.parametrize("shape", ["dag", "chain"])
def test_every_node_counts(shape, tmp_path):
    document, _ = parse_document(generated(shape, 1000, tmp_path), shape)
    graph = document.head
    assert (len(document.graphs), graph.n_nodes, len(graph.outputs)) == (1, 1000, 1)
    # None is dead; the random draw makes a node twice only by rare chance.
    read = set(graph.args) | {graph.outputs[0].value}
    assert read == set(range(graph.n_values))
    assert materialize(document).head.n_nodes >= 990


def test_a_dag_reads_any_earlier_value(tmp_path):
    graph = parse_document(generated("dag", 1000, tmp_path), "dag")[0].head
    uses = np.bincount(graph.args, minlength=graph.n_values)
    assert uses.max() > 2
    chain = parse_document(generated("chain", 1000, tmp_path), "chain")[0].head
    assert np.bincount(chain.args)[1:].max() == 1


@pytest.mark.check
@pytest.mark.parametrize("shape", ["dag", "chain"])
def test_the_same_every_time(shape, tmp_path):
    first = generated(shape, 300, tmp_path)
    assert generated(shape, 300, tmp_path) == first
    assert generated(shape, 300, tmp_path, seed=1) != first
    packed = parse_document(generated(shape, 300, tmp_path, "msgpack"), shape)
    assert packed[1] == "msgpack"
    assert format_document(packed[0], "json") == first


def test_the_gradient_is_right_and_not_zero(tmp_path):
    document, _ = parse_document(generated("dag", 400, tmp_path), "dag")
    keys = [i.key for i in document.head.inputs]
    gradient = materialize(transpose(linearize(document, keys)))
    x, v = np.random.default_rng(1).uniform(-1, 1, (2, len(keys)))
    reverse = evaluate(gradient.head, dict(zip(keys, x, strict=True)) | {Key("y", (-1,)): 1.0})
    slope = sum(reverse[key.cotangent(1)] * t for key, t in zip(keys, v, strict=True))

    def along(h):
        return evaluate(document.head, dict(zip(keys, x + h * v, strict=True)))[Key("y")]

    assert slope == pytest.approx((along(1e-5) - along(-1e-5)) / 2e-5, rel=1e-6)
    assert abs(slope) > 1e-3


@pytest.mark.check
def test_pipeline_prints_tables():
    command = [sys.executable, BENCHMARKS / "pipeline.py", "--sizes", "100,200", "--shapes", "chain", "--repeat", "1"]
    process = subprocess.run([*command, "--markdown"], check=True, capture_output=True, text=True, timeout=LIMIT)
    rows = [line.split("|")[1].strip() for line in process.stdout.splitlines() if line.startswith("|")]
    stages = ["load, JSON", "load, msgpack", "resolve", "linearize", "transpose", "materialize"]
    assert rows[2:12] == [*stages, "write, msgpack", "write, JSON", "compile", "eval"]
    linearized = next(line for line in process.stdout.splitlines() if line.startswith("| linearize"))
    micros, peak = (float(cell) for cell in linearized.split("|")[2:4])
    assert 0 < micros < 1000
    assert 10 < peak < 1000, "the peak of a small graph is that of the interpreter, in MB"


@pytest.mark.campaign
def test_startup_prints_a_table():
    command = [sys.executable, BENCHMARKS / "startup.py", "--rounds", "1", "--markdown"]
    process = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT)
    rows = [line.split("|")[1].strip() for line in process.stdout.splitlines() if line.startswith("|")]
    assert "import click" in rows and "tidu --version" in rows and "tidu eval f.json --set x=3" in rows


@pytest.mark.check
def test_files_prints_tables():
    command = [sys.executable, BENCHMARKS / "files.py", "--nodes", "100", "--repeat", "1", "--shapes", "chain", "--markdown"]
    process = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT)
    rows = [line.split("|")[1].strip() for line in process.stdout.splitlines() if line.startswith("|")]
    assert rows[2:7] == ["primal", "resolved", "linearized", "transposed", "gradient"]
    assert rows[9:] == [f"tidu {command}" for command in ("resolve", "linearize", "transpose", "materialize", "eval")]
    assert "a pipe of six stages: " in process.stdout


@pytest.mark.check
def test_sparse_prints_a_row_for_each_form_and_size():
    command = [sys.executable, BENCHMARKS / "sparse.py", "--sizes", "50,100", "--markdown"]
    process = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in process.stdout.splitlines()[2:]]
    forms = [(places, form, n) for places in ("fixed", "computed") for form in ("dense", "sparse") for n in ("50", "100")]
    assert [tuple(row[:3]) for row in rows] == forms
    flops = {tuple(row[:3]): float(row[4]) for row in rows}
    for places in ("fixed", "computed"):
        assert flops[places, "dense", "100"] > 3.5 * flops[places, "dense", "50"]
        assert flops[places, "sparse", "100"] <= 2 * flops[places, "sparse", "50"]
