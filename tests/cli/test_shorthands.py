"""Shorthands are the pipelines that they print and that their help shows."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests import forking
from tests.programs import needs

ROOT = Path(__file__).parents[2]

CALLS = (
    "grad samples/f.json --wrt x",
    "grad samples/f.json --wrt x --set x=3",
    "grad samples/f.json --wrt x --value --set x=3",
    "grad samples/mlp.json --wrt W1 --wrt b1 -o OUT.msgpack",
    "grad samples/two_outputs.json --wrt r --output x --set r=2 --set theta=1 --format npz -o OUT",
    "jvp samples/affine.json --wrt b --set 'b=[1,2]' --set 'b@1=[1,0]'",
    "jvp samples/affine.json --wrt x --wrt W",
    "jvp samples/vector.json --wrt x --value --format msgpack",
    "jvp samples/two_outputs.json --wrt r --wrt theta --set r=2 --set theta=1 --set r@1=1 --set theta@1=0",
    "vjp samples/vector.json --wrt x",
    "vjp samples/vector.json --wrt x --strong-zeros",
    "grad samples/f.json --wrt x --strong-zeros --set x=3",
    "hvp samples/rosenbrock.json --wrt x --wrt y --strong-zeros",
    "hessian samples/rosenbrock.json --wrt x --wrt y --strong-zeros",
    "jacobian samples/vector.json --wrt x --reverse --strong-zeros",
    "vjp samples/complex.json --wrt z --wrt w --value",
    "hvp samples/rosenbrock.json --wrt x --wrt y",
    "hvp samples/logsumexp.json --wrt x --set 'x=[1,2,3,4]' --set 'x@2=[1,0,0,0]'",
    "jacobian samples/vector.json --wrt x --set 'x=[1,2,3]'",
    "jacobian samples/two_outputs.json --wrt r --wrt theta",
    "jacobian samples/two_outputs.json --wrt r --wrt theta --reverse",
    "jacobian samples/mlp.json --wrt W1 --forward",
    "jacobian samples/mlp.json --wrt W1",
    'jacobian samples/complex.json --wrt z --output square --holomorphic --set \'z={"re": 1, "im": 2}\'',
    "hessian samples/rosenbrock.json --wrt x --wrt y --set x=1 --set y=2",
    "hessian samples/logsumexp.json --wrt x",
    "grad 'reshape(sum(x**3), (1,))' -i x:f64[3] --wrt x --value --set x=1,2,3",
    "hessian 'reshape(sum(x**3), (1, 1))' -i x:f64[3] --wrt x",
    "grad samples/vector.json --sum",
    "hessian 'u = x**3; v = x * sum(x)' --sum --output u --set x=1,2",
    "hvp 'u = x**3; v = x * sum(x)' -i x:f64[2] --sum --output v",
    "grad 'x**2 * y' --set x=1,2,3 --set y=2 --batch x=0",
    "derivative samples/quartic.json --wrt x --order 3 --set x=2",
    "derivative samples/quartic.json --wrt x --order 5",
)


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a line with a folder's path for OUT."""
    script = ["bash", "-euo", "pipefail", "-c", line.replace("OUT", str(folder / "out"))]
    return subprocess.run(script, cwd=ROOT, env=os.environ | {"PATH": forking.path()}, capture_output=True, check=False)


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@needs("bash")
@pytest.mark.parametrize("call", CALLS)
def test_the_printed_pipeline_does_the_same(call, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    direct = shell(f"tidu {call}", tmp_path / "one")
    told = shell(f"tidu {call} --pipeline", tmp_path / "two")
    assert (direct.returncode, told.returncode, told.stderr) == (0, 0, b"")
    assert told.stdout.count(b"\n") == 1 and written(tmp_path / "two") == {}
    piped = shell(told.stdout.decode(), tmp_path / "two")
    assert (piped.returncode, piped.stdout, piped.stderr) == (0, direct.stdout, direct.stderr)
    assert written(tmp_path / "two") == written(tmp_path / "one")
    assert direct.stdout or written(tmp_path / "one")


NAMES = ("grad", "jvp", "vjp", "hvp", "jacobian", "hessian", "derivative")


@pytest.mark.check
@pytest.mark.parametrize("name", NAMES)
def test_the_help_shows_the_pipeline(name, tmp_path):
    order = " --order 2" if name == "derivative" else ""
    told = shell(f"tidu {name} samples/f.json --wrt x{order} --pipeline", tmp_path).stdout.decode().strip()
    text = " ".join(shell(f"tidu {name} --help", tmp_path).stdout.decode().split())
    assert re.search(re.escape(told.replace("samples/f.json", "FILE")) + "(?! [|-])", text)
