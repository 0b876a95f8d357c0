"""Files of jax.export: what their arguments are called, and what reading them needs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tidu_cli
from tests.stablehlo.claims.written import in_this_process
from tidu_cli.adapters.stablehlo.module import parsed
from tidu_cli.adapters.stablehlo.reading.importer import import_module
from tidu_cli.errors import DocumentError, EvaluationError, UnknownNameError
from tidu_cli.graph.graph import Document


def exported(function: Any, *args: Any, **named: Any) -> bytes:
    return bytes(jax.export.export(jax.jit(function))(*args, **named).serialize())


def read(data: bytes) -> Document:
    return import_module(in_this_process(data, "export"))


PAIR, ONE = jax.ShapeDtypeStruct((2,), "float32"), jax.ShapeDtypeStruct((), "float32")


def test_arguments_that_jax_has_pruned_leave_the_others_their_names() -> None:
    document = read(exported(lambda x, p, z: jnp.sum(p["b"]) + z[1], PAIR, {"a": PAIR, "b": PAIR}, (PAIR, ONE)))
    assert [str(i.key) for i in document.head.inputs] == ["1.b", "2.1"]
    document = read(exported(lambda x, y, *, w, v: y * v, PAIR, PAIR, w=PAIR, v=PAIR))
    assert [str(i.key) for i in document.head.inputs] == ["1", "v"]
    assert tidu_cli.evaluate(document, {"1": np.ones(2, "f4"), "v": np.full(2, 3, "f4")})["y"].tolist() == [3, 3]


def test_without_flatbuffers_the_message_names_it_and_not_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = exported(jnp.sin, ONE)
    (tmp_path / "flatbuffers.py").write_text("raise ImportError('No module named flatbuffers')\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with pytest.raises(DocumentError, match=r"^files of jax.export need flatbuffers: pip install 'tidu\[jax\]'$"):
        parsed(data, "export")


def test_integers_of_numpy_are_taken_where_they_fit() -> None:
    """JAX exports indices as i32, and NumPy makes i64."""
    table = np.arange(6.0, dtype="f4").reshape(3, 2)
    document = read(exported(lambda x, rows: x[rows], jax.ShapeDtypeStruct((3, 2), "float32"), jax.ShapeDtypeStruct((2,), "int32")))
    assert tidu_cli.evaluate(document, {"0": table, "1": np.array([2, 0])})["y"].tolist() == [[4, 5], [0, 1]]
    with pytest.raises(EvaluationError, match=r"input 1: expected i32\[2\], got i64\[2\], and 4294967296 at \[1\] would become 0"):
        tidu_cli.evaluate(document, {"0": table, "1": np.array([2, 2**32])})


def test_a_module_alone_has_numbers_and_what_the_program_calls_them(tmp_path: Path) -> None:
    """Of the arguments that are left; where a name is no input, the message has both."""
    program = jax.export.export(jax.jit(lambda params, unused, x: params["w"] @ x))({"w": PAIR}, ONE, PAIR)
    (tmp_path / "f.mlirbc").write_bytes(program.mlir_module_serialized)
    (tmp_path / "f.mlir").write_text(program.mlir_module())
    for file in ("f.mlirbc", "f.mlir"):
        document = tidu_cli.load(tmp_path / file)
        assert [str(i.key) for i in document.head.inputs] == ["0", "1"]
        with pytest.raises(UnknownNameError, match=r"no graph has an input 'x' \(inputs: 0 \(params\['w'\]\), 1 \(x\)\)$"):
            tidu_cli.grad(document, "x")
    tidu_cli.save(document, tmp_path / "own.mlir")
    assert tidu_cli.load(tmp_path / "own.mlir").head.inputs[1].meta == {"stablehlo": {"argument": "x"}}
    assert tidu_cli.load(tmp_path / "own.mlir", plain=True).head.inputs[1].meta is None
