"""The sample scripts, run from elsewhere: what they print against closed forms."""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path

import pytest

from tests import forking
from tests.waiting import LIMIT

SAMPLES = Path(__file__).parents[2] / "samples"


def run(script, *arguments, cwd, path=False):
    environment = {k: v for k, v in os.environ.items() if k != "TIDU"}
    if path:
        environment["PATH"] = forking.path()
    else:
        environment["TIDU"] = str(forking.client())
    return subprocess.run(
        ["sh", SAMPLES / script, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=LIMIT
    )


def printed(script, *arguments, cwd, path=False):
    process = run(script, *arguments, cwd=cwd, path=path)
    assert (process.returncode, process.stderr) == (0, "")
    return json.loads(process.stdout)


def rosenbrock(x, y):
    """Gradient and Hessian, by hand."""
    gradient = -2 * (1 - x) - 400 * x * (y - x * x), 200 * (y - x * x)
    return gradient, ((2 - 400 * y + 1200 * x * x, -400 * x), (-400 * x, 200))


GRADIENT, HESSIAN = rosenbrock(2.0, 1.0)
PRODUCT = tuple(row[0] * 1 + row[1] * -2 for row in HESSIAN)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("jvp.sh", {"y@1": 4 * 3}),
        ("vjp.sh", dict(zip(("x@-1", "y@-1"), GRADIENT, strict=True))),
        ("fof.sh", {"y@1@2": 6 * 3}),
        ("fofof.sh", {"y@1@2@3": 24 * 2}),
        ("for.sh", dict(zip(("x@-1@2", "y@-1@2"), PRODUCT, strict=True))),
        ("rof.sh", dict(zip(("x@-2", "y@-2"), PRODUCT, strict=True))),
        ("ror.sh", dict(zip(("x@-2", "y@-2"), PRODUCT, strict=True))),
    ],
)
def test_script(script, expected, tmp_path):
    assert printed(script, cwd=tmp_path) == expected
    assert not list(tmp_path.iterdir())


@pytest.mark.check
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_nth_derivative(n, tmp_path):
    ((key, value),) = printed("nth_derivative.sh", str(n), cwd=tmp_path).items()
    assert key == "y" + "".join(f"@{k}" for k in range(1, n + 1))
    assert value == pytest.approx(2**n * math.e, rel=1e-14)


def test_tidu_is_found_on_the_path(tmp_path):
    assert printed("jvp.sh", cwd=tmp_path, path=True) == {"y@1": 12}


def test_usage(tmp_path):
    process = run("nth_derivative.sh", cwd=tmp_path)
    assert (process.returncode, process.stdout) == (2, "")
    assert "usage" in process.stderr


@pytest.mark.parametrize("script", sorted(p.relative_to(SAMPLES) for p in SAMPLES.rglob("*.sh")), ids=str)
def test_form(script):
    text = (SAMPLES / script).read_text()
    assert text.startswith("#!/bin/sh\n# ")
    assert "\nset -eu\n" in text
    assert os.access(SAMPLES / script, os.X_OK)
