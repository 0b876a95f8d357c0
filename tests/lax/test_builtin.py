"""The index of families is what the families say, and only what is needed is imported."""

from __future__ import annotations

import subprocess
import sys

from tidu_cli.checking.numeric.trials import example_cases
from tidu_cli.lax.vocabulary import BUILTIN, FAMILIES, family
from tools.index import families


def test_the_index_is_what_the_families_hold() -> None:
    """`make generated` writes it."""
    assert families() == list(FAMILIES)
    assert {name: [p.name for p in family(name).PRIMITIVES] for name in FAMILIES} == {k: v.split() for k, v in FAMILIES.items()}
    names = [op for ops in FAMILIES.values() for op in ops.split()]
    assert len(set(names)) == len(names) == len(BUILTIN.primitives)
    assert [p.name for p in BUILTIN] == names


def test_every_primitive_says_how_many_results_it_has() -> None:
    """Where operand types are hidden, that is all that is known."""
    for primitive in BUILTIN:
        for _, case in example_cases(BUILTIN, primitive):
            assert primitive.domain.n_results(case.attrs, len(case.operands)) == len(case.results), case


def test_a_small_document_needs_few_families() -> None:
    program = """
import sys
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.keys import Key
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose
document, _ = parse_document(sys.stdin.buffer.read(), "stdin")
transpose(linearize(document, [Key("x")]))
print(*sorted(m.removeprefix("tidu_cli.lax.") for m in sys.modules if m.startswith("tidu_cli.lax.")))
"""
    with open("samples/f.json", "rb") as file:
        done = subprocess.run([sys.executable, "-c", program], stdin=file, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & set(FAMILIES) <= {
        "elementwise.arithmetic",
        "elementwise.complex_numbers",
        "arrays.structural",
    }
