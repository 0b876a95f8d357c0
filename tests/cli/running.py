"""Running commands: as a process, as a shell does, or within this one, which takes no 0.2 seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from tests.programs import called_by, require
from tidu_cli.cli.main import cli

ROOT = Path(__file__).parents[2]
F = str(ROOT / "samples" / "f.json")
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}


def process(*args, input=b"", **options) -> subprocess.CompletedProcess[bytes]:
    """Run `tidu` with these arguments."""
    options = {"cwd": ROOT, "env": ENVIRONMENT, **options}
    return subprocess.run(["tidu", *map(str, args)], input=input, capture_output=True, check=False, **options)


def shell(line, **options) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in the root of the repository."""
    require("bash", *called_by(line))
    options = {"env": ENVIRONMENT, **options}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def invoke(*args, input=b"") -> Result:
    """Run a command within this process. What is no `Exit` is an error of the command line itself, and raised."""
    result = CliRunner().invoke(cli, list(map(str, args)), input=input, prog_name="tidu")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def succeed(*args, input=b"") -> bytes:
    """What a command writes, which must succeed and be silent on stderr."""
    result = invoke(*args, input=input)
    assert (result.exit_code, result.stderr) == (0, ""), args
    return result.stdout_bytes


def document(*graphs, **more) -> bytes:
    """A JSON document of these graphs."""
    return json.dumps({"tidu": 1, "graphs": list(graphs), **more}).encode()


def graph(nodes=(), inputs=(("x", "f64[]"),), outputs=(), name="f", **more) -> dict:
    """A graph; `nodes` are (op, input, ...), `inputs` are (key, type), `outputs` are (key, value)."""
    return {
        "name": name,
        "inputs": [{"key": key, "type": type_} for key, type_ in inputs],
        "nodes": [{"op": op, "inputs": list(arguments)} for op, *arguments in nodes],
        "outputs": [{"key": key, "value": value} for key, value in outputs],
        **more,
    }
