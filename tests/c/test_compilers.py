"""C for every compiler: gcc and clang with and without optimization, and a program in which valgrind sees nothing wrong."""

from __future__ import annotations

import re
import subprocess
from itertools import product

import numpy as np
import pytest

from tests.c.compiled import program
from tests.c.test_primitives import REFUSED, check, examples
from tests.c.test_programs import SAMPLES, agree, is_plain, values_for
from tests.docs.blocks import ROOT
from tests.programs import needs
from tests.tiers import few
from tests.waiting import LIMIT
from tidu_cli.api.derivatives import grad
from tidu_cli.api.evaluation import evaluate
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import write_document
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
@pytest.mark.parametrize("real", [None, "float"])
def test_valgrind_sees_nothing_wrong(real, tmp_path):
    """Memory that nothing was put into counts, too: results have none, and nothing depends on what was in the workspace."""
    documents = [d for name in SAMPLES[:: 4 if real else 1] for d in with_derivatives(name)[:2]]
    main = program(tmp_path, [(d, values_for(d, 1)) for d in documents], "cc", "-std=c99", "-g", "-O1", real=real)
    command = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", str(main)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


SKETCH = """/* Sends what it computes as integers with the same bits. */
#include <avr/io.h>
#include <avr/sleep.h>
#include <stdlib.h>
#include <string.h>
#include "small.h"

static void send(const char *text)
{
    for (; *text; ++text) {
        while (!(UCSR0A & 1 << UDRE0)) {}
        UDR0 = *text;
    }
}

int main(void)
{
    static const float x[][2] = {POINTS};
    float work[rosenbrock_1_WORK], slope[2];
    char text[12];

    UCSR0B = 1 << TXEN0;
    for (unsigned k = 0; k < sizeof x / sizeof x[0]; ++k) {
        rosenbrock_1(&x[k][0], &x[k][1], &slope[0], &slope[1], work);
        for (int i = 0; i < 2; ++i) {
            int32_t bits;
            memcpy(&bits, &slope[i], sizeof bits);
            send(ltoa(bits, text, 10));
            send(",\\n");
        }
    }
    sleep_cpu(); /* the simulator ends */
    return 0;
}
"""


@needs("avr-gcc", "simavr")
@pytest.mark.check
def test_a_microcontroller_computes_what_tidu_does(tmp_path):
    """A gradient of floats on the processor of an Arduino Uno, in a simulator. The serial port sends the bits of each."""
    document = parse_document((ROOT / "samples" / "rosenbrock.json").read_bytes(), "rosenbrock")[0]
    gradient = grad(document, [i.key for i in document.head.inputs])
    write_document(gradient, str(tmp_path / "small.c"), "c", real="float")
    points = np.random.default_rng(0).uniform(-2, 2, (20, 2)).astype(np.float32)
    rows = ", ".join(f"{{{x!s}f, {y!s}f}}" for x, y in points)
    (tmp_path / "sketch.c").write_text(SKETCH.replace("POINTS", rows))
    flags = ["-mmcu=atmega328p", "-Os", "-std=c99", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["avr-gcc", *flags, "sketch.c", "small.c", "-lm", "-o", "sketch.elf"], cwd=tmp_path, check=True)
    command = ["simavr", "-m", "atmega328p", "-f", "16000000", "sketch.elf"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=LIMIT)
    bits = re.findall(r"(-?\d+),", done.stdout + done.stderr)
    made = np.array(bits, np.int32).view(np.float32).reshape(20, 2)
    expected = [list(evaluate(gradient, dict(zip("xy", map(float, point), strict=True))).values()) for point in points]
    np.testing.assert_allclose(made, expected, 1e-5, 1e-4)
