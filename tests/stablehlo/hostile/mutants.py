"""Modules that are damaged in many ways, each by a number: what reading them comes to, in a process of its own.

    python -m tests.stablehlo.hostile.mutants FIRST LAST

prints a line of each: its number and read, refused, or what went wrong. MLIR may end the process, at what stands in the last line.
"""

from __future__ import annotations

import random
import re
import sys
import time
from functools import cache
from typing import Any

KINDS = ("text", "bytecode", "artifact", "export")

SECONDS = 20
"""No mutant may take longer."""

NUMBERS = ("0", "-1", "1", "2", "7", "64", "65536", "2147483647", "9223372036854775807", "99999999999999999999", "?", "0x7F", "1.5")
WORDS = ("f32", "f64", "i1", "ui8", "i64", "bf16", "complex<f64>", "f8E4M3FN", "i4", "index", "none", "!stablehlo.token",
         "tuple<f64>", "tensor<?xf64>", "dense<0>", "true", "false", "unit", "[]", "{}", "\"x\"", "@main", "@f", "%0",
         "stablehlo.add", "stablehlo.while", "stablehlo.custom_call", "chlo.erf", "other.op", "\x00", "é", "func.func")  # fmt: skip


def functions() -> list[tuple[Any, tuple[Any, ...]]]:
    """Functions that have operations of all families."""
    import jax
    import jax.numpy as jnp

    x, v = jnp.ones((3, 3)), jnp.arange(4.0)

    def loop(a: Any) -> Any:
        return jax.lax.while_loop(lambda c: jnp.sum(c) < 50, lambda c: jnp.sin(c) + c, a)

    def scanned(a: Any) -> Any:
        return jax.lax.scan(lambda c, y: (c * y, c + y), 1.0, a)

    def windows(a: Any) -> Any:
        return jax.lax.reduce_window(a, 0.0, jax.lax.add, (2,), (1,), "SAME"), jnp.cumsum(a)

    def image(a: Any) -> Any:
        return jax.lax.conv_general_dilated(a[None, None], a[None, None], (1, 1), "SAME")

    return [
        (lambda a, b: jnp.tanh(a @ b) + jax.nn.softmax(a), (x, x)),
        (loop, (v,)),
        (scanned, (v,)),
        (windows, (v,)),
        (image, (x,)),
        (lambda a: (jnp.sort(a), jnp.argmax(a), jax.lax.top_k(a, 2)), (v,)),
        (lambda a, i: a[i] + a.at[i].add(2.0)[i], (v, jnp.arange(2))),
        (lambda a: jax.lax.cond(a[0] > 0, jnp.sin, jnp.cos, a), (v,)),
        (lambda a: jax.tree.leaves((jnp.linalg.svd(a), jnp.linalg.solve(a, a), jnp.linalg.qr(a))), (x,)),
        (lambda a: (jnp.fft.fft(a), jax.scipy.special.erf(a), (a > 1).astype("int8"), jnp.pad(a, 2)), (v,)),
    ]


@cache
def modules(kind: str) -> tuple[bytes, ...]:
    """The modules of these functions."""
    import jax
    from jax import export
    from jax.interpreters.mlir import make_ir_context, module_to_bytecode
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    encoded = []
    for function, args in functions():
        jitted = jax.jit(function)
        if kind == "export":
            encoded.append(bytes(export.export(jitted)(*args).serialize()))
            continue
        text = jitted.lower(*args).as_text()
        if kind == "text":
            encoded.append(text.encode())
            continue
        with make_ir_context():
            if kind == "bytecode":
                encoded.append(module_to_bytecode(ir.Module.parse(text)))
            elif "chlo." not in text and "sdy." not in text:  # which artifacts have no form of
                encoded.append(stablehlo.serialize_portable_artifact_str(text, stablehlo.get_current_version()))
    return tuple(encoded)


def mutant(number: int) -> tuple[bytes, str]:
    """A module that is damaged once or a few times, and what it is: text for one in two."""
    rng = random.Random(number)
    kind = rng.choice([*["text"] * 4, *KINDS[1:]])
    data = rng.choice(modules(kind))
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        data = _of_text(rng, data.decode(errors="replace")).encode() if kind == "text" else _of_bytes(rng, data)
    return data, "export" if kind == "export" else "text" if kind == "text" else "bytecode"


def _of_bytes(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(max(1, len(data)))
    most = at + rng.choice([1, 1, 2, 8, 64])
    how = rng.randrange(5)
    if how == 0:
        return data[:at]
    if how == 1:
        return data[:at] + data[most:]
    if how == 2:
        return data[:at] + rng.randbytes(most - at) + data[at:]
    return data[:at] + rng.randbytes(most - at) + data[most:]


def _of_text(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    k, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    how = rng.randrange(8)
    if how == 0:
        del lines[k]
    elif how == 1:
        lines[k], lines[other] = lines[other], lines[k]
    elif how == 2:
        lines.insert(k, lines[other])
    elif how == 3:
        return text[: rng.randrange(len(text) + 1)]
    else:
        pattern = (r"-?\d+(\.\d+e[+-]\d+)?", r"\b[a-z]\w*(\.\w+)?\b", r"tensor<[^>]*>", r"[\w.]+ = [^,}\]]+", r"%\w+")[
            rng.randrange(5)
        ]
        places = list(re.finditer(pattern, text))
        if places:
            place = rng.choice(places)
            new = rng.choice([rng.choice(NUMBERS), rng.choice(WORDS), rng.choice(places)[0], rng.choice(places)[0]])
            return text[: place.start()] + new + text[place.end() :]
    return "\n".join(lines)


def outcome(data: bytes, kind: str) -> str:
    """read, or refused in one line with a place where there is one; else what went wrong."""
    from tidu_cli.adapters.stablehlo.files import read_stablehlo
    from tidu_cli.errors import DocumentError, LimitError

    start = time.process_time()
    try:
        read_stablehlo(data, kind, "m.mlir")
        text = "read"
    except (DocumentError, LimitError) as error:
        text = "refused" if "\n" not in str(error) and str(error).startswith("m.mlir:") else f"wrong: {error!r}"
    except Exception as error:
        import traceback

        last = traceback.extract_tb(error.__traceback__)[-1]
        text = f"wrong: {type(error).__name__} at {last.filename}:{last.lineno}: {error!s}".replace("\n", " ")
    took = time.process_time() - start
    return text if took < SECONDS else f"wrong: took {took:.0f} s, {text}"


def main(first: int, last: int) -> None:
    """Try these mutants."""
    import resource

    from tests.stablehlo.claims.written import in_this_process
    from tidu_cli.adapters.stablehlo import files
    from tidu_cli.adapters.stablehlo.parsing import ModuleError
    from tidu_cli.errors import DocumentError

    def parsed(data: bytes, kind: str) -> Any:
        try:
            return in_this_process(data, kind)
        except ModuleError as error:
            raise DocumentError(str(error)) from None

    files.parsed = parsed
    for kind in KINDS:
        modules(kind)
    resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
    for number in range(first, last):
        print(number, end=" ", flush=True)
        print(outcome(*mutant(number)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
