"""Documents as C, compiled, and called as another language would: by what the function says of itself."""

from __future__ import annotations

import ctypes
import itertools
import json
import subprocess
from pathlib import Path

import numpy as np

from tidu_cli.formats.write import write_document
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype

STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror")

_numbers = itertools.count()


def compiled(document, folder: Path, *flags: str, cc: str = "cc", link=(), **options):
    """A function from arrays to arrays; `source` is its file and `described` what it says of itself."""
    path = folder / f"c{next(_numbers)}.c"
    write_document(document, str(path), "c", **options)
    library = path.with_suffix(".so")
    command = [cc, *STRICT, "-shared", "-fPIC", *(flags or ("-O1",)), str(path), "-o", str(library), *link, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return called(library, path)


def called(library: Path, path: Path):
    functions = ctypes.CDLL(str(library))
    name = next(line for line in path.read_text().splitlines() if line.startswith("const char *")).split("*")[1].split("(")[0]
    describe = getattr(functions, name)
    describe.restype = ctypes.c_char_p
    described = json.loads(describe())

    def call(*values):
        given = [np.ascontiguousarray(x, numpy_dtype(np, i["dtype"])) for x, i in zip(values, described["inputs"], strict=True)]
        made = [np.full(o["shape"], 7, numpy_dtype(np, o["dtype"])) for o in described["outputs"]]
        work = np.full(described["work_bytes"] // 8 + 1, np.nan)
        arrays = [a.ctypes.data_as(ctypes.c_void_p) for a in (*given, *made, work)]
        assert getattr(functions, described["function"])(*arrays) == 0
        return made

    call.source, call.described = path, described
    return call


def alike(actual, expected, type_: TensorType, told="", rounding=64):
    """Equal bits of integers and bools; floats but for roundings."""
    expected = np.asarray(expected)
    assert actual.dtype == expected.dtype and actual.shape == expected.shape, told
    if actual.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected, err_msg=str(told))
        return
    few = rounding * np.finfo(actual.dtype).eps
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    np.testing.assert_allclose(actual, expected, few, few * float(scale), err_msg=str(told))
