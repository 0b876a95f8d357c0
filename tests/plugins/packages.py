"""Packages with primitives: the sample, installed by pip, and packages that are wrong on purpose, written by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.running import ENVIRONMENT, ROOT, process
from tests.programs import require

SAMPLE = ROOT / "samples" / "plugin"

GOOD = """
import numpy
from tidu_cli.graph.types import FLOATS
from tidu_cli.rules.families import unary
identity = lambda np, attrs, operands, results: lambda x: x
P = unary("{op}", FLOATS, tangent=lambda t, x, y: t, kernel=identity, formula="x", summary="x")
"""
"""A module whose P is the identity under another name."""


def install(source: Path, folder: Path) -> Path:
    """Build and install a package into a folder, without a network."""
    require("hatchling")
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "--target", str(folder), str(source)], check=True, capture_output=True
    )
    return folder


def write(
    folder: Path, name: str, entries: dict[str, str], module: str = "", *, version: str = "1.0", metadata: bool = True
) -> Path:
    """A package as if it were installed in this folder: its module is called as the package is, with `_` for `-`."""
    information = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    information.mkdir(parents=True)
    if metadata:
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [f"{op} = {value}\n" for op, value in entries.items()]
    (information / "entry_points.txt").write_text("[tidu.primitives]\n" + "".join(lines))
    (folder / f"{name.replace('-', '_')}.py").write_text(module)
    return folder


def tidu(folder: Path, *args: object, input: bytes = b"", named: str | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run `tidu` where these packages are installed, and all, or those named, may be imported."""
    return process(*args, input=input, env=environment(folder, named=named))


def environment(*folders: Path, named: str | None = None) -> dict[str, str]:
    """The environment in which packages of these folders are found, in this order, and all, or those named, may be imported."""
    if named is None:
        named = ",".join(path.name.partition("-")[0] for folder in folders for path in folder.glob("*.dist-info"))
    paths = {"PYTHONPATH": os.pathsep.join(map(str, folders)), "TIDU_PLUGINS": named}
    return {**ENVIRONMENT, **paths, "COLUMNS": "100", "NO_COLOR": "1"}


def message(done: subprocess.CompletedProcess[bytes]) -> str:
    """The one line that a failure says."""
    assert done.returncode == 1 and done.stdout == b"", done
    (line,) = done.stderr.decode().splitlines()
    return line
