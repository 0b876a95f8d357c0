"""Programs and Python packages that some tests need: where one is missing, they are skipped, with the line that installs it.

`python tests/programs.py` prints the Debian packages of programs that are missing. A test that imports a missing package, or calls
what of tidu needs it, is skipped by itself (`tests/conftest.py`); others say what they need by `needs` or `require`. With
TIDU_TEST_ALL=1 nothing may be missing: a test that is skipped, for whatever reason, has failed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # which a bare machine lacks, and the packages are printed for one
    import pytest

PACKAGES = {
    "avr-gcc": "gcc-avr avr-libc",
    "bash": "bash",
    "c++": "g++",
    "cc": "gcc libc6-dev",
    "chromium": "chromium fonts-dejavu-core",
    "clang": "clang",
    "cmake": "cmake",
    "dot": "graphviz",
    "fish": "fish",
    "groff": "groff-base",
    "mandoc": "mandoc",
    "node": "nodejs",
    "openblas": "libopenblas-dev",
    "rustc": "rustc",
    "simavr": "simavr",
    "valgrind": "valgrind",
    "wasm-ld": "lld",
    "zsh": "zsh",
}
"""The packages of Debian that bring each program."""

EXTRAS = {
    "dask": "dask",
    "distributed": "dask",
    "jax": "jax",
    "jaxlib": "jax",
    "llvmlite": "native",
    "onnx": "onnx",
    "zarr": "dask",
    "zstandard": "zstd",
}
EXTRAS |= dict.fromkeys(("PIL", "diffrax", "equinox", "flax", "hatchling", "iree", "magika", "mypy", "numpyro", "ruff"), "check")
EXTRAS |= dict.fromkeys(("onnxruntime", "optax", "rapidocr_onnxruntime", "skl2onnx", "sklearn"), "check")
EXTRAS |= dict.fromkeys(("tree_sitter", "tree_sitter_julia"), "check")
"""The extra of tidu that brings each Python package."""

_NAMES = {"chromium": ("chromium", "chromium-browser", "google-chrome")}

_LIBRARIES = frozenset({"openblas"})
"""Of the names above those of libraries that compilers link with."""

_CALLS = {
    "dot": r"\btidu( -\S+)* (dot\b.*(--format[= ]|-o ?\S+\.)(svg|png|pdf)|view)\b",
    "node": r"\bnode\b",
    "avr-gcc": r"\bavr-(gcc|size)\b|\bsketch\.elf\b",
    "simavr": r"\bsimavr\b",
    "c++": r"(^|\s)c\+\+\s|\bfromcpp\b",
    "cc": r"\bcc\b|\bmake --silent fit\b|\./fit\b|\bcontrol\.py\b|\bdense\.py\b",
    "cmake": r"\bcmake\b|\bbuild/fit\b",
    "openblas": r"-lopenblas\b",
    "clang": r"\bclang\b|\bcall\.mjs\b",
    "rustc": r"\brustc\b|\bfromrust\b",
    "wasm-ld": r"\bclang --target=wasm32\b|\bcall\.mjs\b",
    "dask": r"--scheduler\b|\.zarr\b",
    "jax": r"--jax\b|\.mlir(bc)?\b|--engine[= ]xla|stablehlo",
    "llvmlite": r"(--engine[= ]|TIDU_ENGINE=)native",
    "onnx": r"\.onnx\b|--format[= ]onnx",
    "onnxruntime": r"\bonnxruntime\b",
    "zstandard": r"\.zst\b",
}
"""What in a command line needs a program or a package, itself or by tidu."""


def path_of(name: str) -> str | None:
    """Where a program or a package is; None where it is missing."""
    if name in EXTRAS:
        spec = find_spec(name)
        return spec and (spec.origin or name)
    if name in _LIBRARIES:
        return _library(name)
    return next(filter(None, map(shutil.which, _NAMES.get(name, (name,)))), None)


def _library(name: str) -> str | None:
    file = f"lib{name}.so"
    if shutil.which("cc") is None:
        return None
    place = subprocess.run(["cc", f"-print-file-name={file}"], capture_output=True, text=True, check=False).stdout.strip()
    return place if place != file else None


def called_by(command: str) -> list[str]:
    """The programs and packages that a command line needs."""
    return [name for name, pattern in _CALLS.items() if re.search(pattern, command)]


def missing(*names: str) -> str:
    """Which of these programs and packages are missing, and the lines that install them. Empty if none is."""
    lacking = [name for name in dict.fromkeys(names) if path_of(name) is None]
    extras = ",".join(dict.fromkeys(EXTRAS[name] for name in lacking if name in EXTRAS))
    packages = " ".join(PACKAGES[name] for name in lacking if name in PACKAGES)
    lines = [f"pip install 'tidu[{extras}]'"] * bool(extras) + [f"apt-get install {packages}"] * bool(packages)
    return f"needs {', '.join(lacking)}: {'; '.join(lines)}" if lacking else ""


def needs(*names: str) -> pytest.MarkDecorator:
    """Marks tests that need these programs and packages: they are skipped where one is missing."""
    import pytest

    return pytest.mark.skipif(bool(missing(*names)), reason=missing(*names) or "nothing")


def require(*names: str) -> None:
    """Skip the test that is running, if one of these programs and packages is missing."""
    import pytest

    if lacking := missing(*names):
        pytest.skip(lacking)


def lacking_import(error: BaseException) -> str:
    """What to say if an error, or what it comes from, is that a package of an extra is missing. Empty if it is not."""
    seen: BaseException | None = error
    while seen is not None:
        names = [(seen.name or "").partition(".")[0]] if isinstance(seen, ModuleNotFoundError) else []
        if asked_for := re.search(r": pip install 'tidu\[(\w+)\]'$", str(seen)):
            names = [name for name, extra in EXTRAS.items() if extra == asked_for[1]]
        if lacking := missing(*(name for name in names if name in EXTRAS)):
            return lacking
        seen = seen.__cause__ or seen.__context__
    return ""


if __name__ == "__main__":
    print(" ".join(packages for program, packages in PACKAGES.items() if path_of(program) is None))
