"""Documents as C, compiled, and called as another language would: by what the function says of itself."""

from __future__ import annotations

import ctypes
import itertools
import json
import subprocess
from pathlib import Path

import numpy as np

from tidu_cli.adapters.c.module import Module
from tidu_cli.formats.write import write_document
from tidu_cli.frozen import replace
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.runtime.sizing import specialized

STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror")

EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7}

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

    function = described["function"]

    def shapes(sizes):
        """The shapes of outputs, and the elements of the workspace."""
        outputs = [o["shape"] for o in described["outputs"]]
        if not sizes:
            return outputs, described["work_bytes"] // 8 + 1
        work = getattr(functions, f"{function}_work")
        work.restype = ctypes.c_size_t
        ranks = [len(p["shape"]) for p in (*described["inputs"], *described["outputs"])]
        axes = (ctypes.c_size_t * (sum(ranks) + 1))()
        assert getattr(functions, f"{function}_shapes")(*sizes, axes) == 0
        ends = list(itertools.accumulate(ranks))[len(described["inputs"]) :]
        return [axes[end - len(o) : end] for end, o in zip(ends, outputs, strict=True)], work(*sizes)

    def call(*values, sizes=()):
        sizes = [ctypes.c_size_t(n) for n in sizes]
        given = [np.ascontiguousarray(x, numpy_dtype(np, i["dtype"])) for x, i in zip(values, described["inputs"], strict=True)]
        of_outputs, room = shapes(sizes)
        made = [np.full(shape, 7, numpy_dtype(np, o["dtype"])) for shape, o in zip(of_outputs, described["outputs"], strict=True)]
        work = np.full(room, np.nan)
        arrays = [a.ctypes.data_as(ctypes.c_void_p) for a in (*given, *made, work)]
        status = getattr(functions, function)(*sizes, *arrays)
        assert status == 0, f"status {status}"
        return made

    call.source, call.described, call.functions = path, described, functions
    return call


DRIVER = """#include <stdlib.h>
#include <string.h>
INCLUDES
static void *copied(size_t n, const void *from)
{
    void *const to = malloc(n ? n : 1);
    if (!to) exit(3);
    if (from) memcpy(to, from, n);
    return to;
}

static int odd; /* so that all bytes of results are looked at */

static void seen(const unsigned char *bytes, size_t n)
{
    for (size_t k = 0; k < n; ++k) if (bytes[k] % 2) odd = !odd;
}

int main(void)
{
    int failed = 0;
CALLS
    return failed + (odd < 0);
}
"""


def program(folder: Path, calls, *command: str, **options) -> Path:
    """A program that calls functions of documents of one graph with values, in memory of their sizes, and looks at all results.

    A call is a document and values, and where it has open sizes, a number for each, in the order of arguments.
    """
    lines, includes, sources = [], [], []
    for number, (document, values, *sizes) in enumerate(calls):
        module = Module(document, options.get("real"))
        path, name = folder / f"p{number}.c", f"function_{number}"
        write_document(replace(document, graphs=(replace(document.head, name=name),)), str(path), "c", **options)
        fixed = specialized(document, sizes[0], vocabulary(document.cases)) if sizes else document
        numbers = [f"{n}" for n in sizes[0].values()] if sizes else []
        room = f"{name}_work({', '.join(numbers)}) * sizeof({module.room})" if sizes else f"{name}_WORK_BYTES"
        ports = fixed.head.inputs, fixed.head.outputs
        inputs, outputs = ([TensorType(module.dtype(p.type), p.type.shape) for p in one] for one in ports)
        arrays = [np.ascontiguousarray(x, numpy_dtype(np, t.dtype)) for x, t in zip(values, inputs, strict=True)]
        lengths = [(a.nbytes, f"x{k}") for k, a in enumerate(arrays)] + [(t.nbytes, "NULL") for t in outputs]
        data = [f"static const unsigned char x{k}[] = {{{','.join(map(str, a.tobytes())) or '0'}}};" for k, a in enumerate(arrays)]
        places = [f"copied({n}, {source})" for n, source in lengths] + [f"copied({room}, NULL)"]
        lines += ["{", *data, f"void *a[] = {{{', '.join(places)}}};"]
        lines += [f"failed |= {name}({', '.join([*numbers, *(f'a[{k}]' for k in range(len(places)))])});"]
        lines += [f"seen(a[{k}], {n});" for k, (n, source) in enumerate(lengths) if source == "NULL"]
        lines += [f"for (int k = 0; k < {len(places)}; ++k) free(a[k]);", "}"]
        includes.append(f'#include "p{number}.h"')
        sources.append(str(path))
    main = folder / "main.c"
    main.write_text(DRIVER.replace("INCLUDES", "\n".join(includes)).replace("CALLS", "\n".join(lines)))
    done = subprocess.run(
        [*command, str(main), *sources, "-o", str(folder / "main"), "-lm"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:4000]
    return folder / "main"


def alike(actual, expected, type_: TensorType, told="", rounding=64, least=0.0):
    """Equal bits of integers and bools; floats, and parts of complex numbers, but for roundings of the largest, or of `least`."""
    expected = np.asarray(expected)
    assert actual.dtype == expected.dtype and actual.shape == expected.shape, told
    if actual.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected, err_msg=str(told))
        return
    if type_.dtype in ("f16", "bf16"):
        few, actual, expected = 4 * EPSILON[type_.dtype], actual.astype(np.float32), expected.astype(np.float32)
    else:
        few = rounding * np.finfo(actual.dtype).eps
    if actual.dtype.kind == "c":
        actual, expected = (np.stack([x.real, x.imag]) for x in (actual, expected))
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=least)
    np.testing.assert_allclose(actual, expected, few, few * float(scale), err_msg=str(told))
