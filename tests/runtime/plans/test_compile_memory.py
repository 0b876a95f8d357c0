"""What compiling large graphs of scalars, and running them once, takes beside the graph: bytes a node.

NumPy and Python report theirs. The graph itself takes about 11, a program in groups 7, and one that runs one by one 21.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.generate import chain, dag
from tests.peaks import peak
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.runtime.plans.program import compile_graph
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

SIZES = (2**15, 2**17)

IN_BLOCKS = 6 * 2**20
"""What is computed block by block may take so much, however large the graph."""


def gradient(document: Document) -> Graph:
    return materialize(transpose(linearize(document, [i.key for i in document.head.inputs]))).head


@pytest.mark.check
@pytest.mark.parametrize(
    ("make", "bytes_a_node", "n"),
    [
        (dag, 24, 2**16),
        (chain, 38, 2**15),
        *(pytest.param(dag, 24, n, marks=pytest.mark.campaign) for n in SIZES),
        pytest.param(chain, 38, SIZES[-1], marks=pytest.mark.campaign),
    ],
)
def test_compiling(make: Callable[[int], Document], bytes_a_node: int, n: int) -> None:
    graph = gradient(make(n))
    assert peak(lambda: compile_graph(graph)) < IN_BLOCKS + bytes_a_node * graph.n_nodes


@pytest.mark.check
@pytest.mark.parametrize("n", [2**15, pytest.param(2**17, marks=pytest.mark.campaign)])
def test_running_a_program_once_keeps_no_calls(n: int) -> None:
    program = compile_graph(gradient(dag(n)))
    at = {i.key: np.array(0.1) for i in program.inputs}
    assert peak(lambda: evaluate(program, at)) < IN_BLOCKS + 10 * program.n_steps
