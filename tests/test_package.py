"""`import tidu`: the package that one installs, its types, and its wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import tidu
import tidu_cli
from tidu_cli import adapters, api

ROOT = Path(tidu_cli.__file__).parents[1]


def test_it_is_all_of_tidu_cli():
    assert (
        tidu.__all__ == tidu_cli.__all__ == sorted([*api.__all__, *adapters.FUNCTIONS]) and tidu.__version__ == tidu_cli.__version__
    )
    for name in tidu.__all__:
        assert getattr(tidu, name) is getattr(tidu_cli, name)
        assert name in dir(tidu) and name in dir(tidu_cli)
    for module in (tidu, tidu_cli):
        with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'nothing'"):
            module.nothing  # noqa: B018
    names: dict[str, object] = {}
    exec("from tidu import *", names)
    assert set(tidu.__all__) <= set(names)


def test_importing_it_imports_nothing_else():
    code = "import sys, tidu; sys.exit(any(name in sys.modules for name in ('numpy', 'tidu_cli.api', 'click', 'typing')))"
    assert subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, check=False).returncode == 0


def test_it_is_the_command_too():
    done = [subprocess.run([sys.executable, "-m", m, "--version"], capture_output=True, check=True) for m in ("tidu", "tidu_cli")]
    assert done[0].stdout == done[1].stdout == f"tidu {tidu.__version__}\n".encode()


@pytest.mark.check
def test_type_checkers_see_it(tmp_path):
    (tmp_path / "use.py").write_text(
        "import tidu\n"
        "document: tidu.Document = tidu.grad(tidu.load('f.json'), 'x', value=True)\n"
        "values: dict[str, float] = tidu.evaluate(document, x=3.0)\n"
        "error: type[Exception] = tidu.TiduError\n"
        "tidu.grad(3, 'x')  # line 5\n"
        "tidu.nothing  # line 6\n"
        "tidu.materialize(document, recompute=object())  # line 7\n"
    )
    environment = {"MYPYPATH": str(ROOT), "PATH": ""}
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", tmp_path, tmp_path / "use.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)
    assert [line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line] == ["5", "6", "7"], done.stdout


def test_the_wheel_holds_both_packages(tmp_path):
    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"tidu/__init__.py", "tidu/__main__.py", "tidu/py.typed", "tidu_cli/__init__.py", "tidu_cli/py.typed"} <= names
    ours = {str(p.relative_to(ROOT)) for name in ("tidu", "tidu_cli") for p in (ROOT / name).rglob("*.py")}
    assert ours <= names
