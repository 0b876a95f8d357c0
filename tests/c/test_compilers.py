"""C for every compiler: gcc and clang with and without optimization, and a program in which valgrind sees nothing wrong."""

from __future__ import annotations

import subprocess
from itertools import product

import pytest

from tests.c.compiled import program
from tests.c.test_primitives import REFUSED, check, examples
from tests.c.test_programs import SAMPLES, agree, is_plain, values_for
from tests.docs.blocks import ROOT
from tests.programs import needs
from tests.tiers import few
from tidu_cli.formats.read import parse_document
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

BOTH = needs("cc", "clang")
COMPILERS = [("cc", "-O0"), ("cc", "-O3"), ("clang", "-O0"), ("clang", "-O3")]
NAMES = [p.name for p in BUILTIN if p.name not in REFUSED]
PARTS = 40


@BOTH
@pytest.mark.check
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("cc", "level"), COMPILERS[1:])  # the first is that of the tests of primitives
def test_primitives(cc, level, part, tmp_path):
    cases, operands = zip(*[one for name in NAMES[part::PARTS] for one in few(list(examples(name)), 3)], strict=True)
    check(cases, operands, tmp_path, level, cc=cc)


def with_derivatives(name):
    """A sample, its gradient, and a slope of that; none of a sample that has no C."""
    document = parse_document((ROOT / "samples" / name).read_bytes(), name)[0]
    if not is_plain(document):
        return []
    floats = [i.key for i in document.head.inputs if i.type.inexact]
    gradient = materialize(transpose(linearize(document, floats)))
    return [materialize(document), gradient, materialize(linearize(gradient, floats[:1]))]


@BOTH
@pytest.mark.check
@pytest.mark.parametrize("name", SAMPLES)
def test_samples_and_their_derivatives(name):
    for (cc, level), document in product(COMPILERS, with_derivatives(name)):
        agree(document, values_for(document, 2), level, cc=cc)


@needs("cc", "valgrind")
@pytest.mark.check
def test_valgrind_sees_nothing_wrong(tmp_path):
    """Memory that nothing was put into counts, too: results have none, and nothing depends on what was in the workspace."""
    documents = [d for name in SAMPLES for d in with_derivatives(name)[:2]]
    main = program(tmp_path, [(d, values_for(d, 1)) for d in documents], "cc", "-std=c99", "-g", "-O1")
    command = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", str(main)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
