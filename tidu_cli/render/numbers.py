"""Arrays as short texts, for edges and captions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def number_text(array: NDArray[Any], shown: int = 4) -> str:
    """The elements of an array, six digits each, row by row; of a large array the first `shown`."""
    if array.ndim == 0:
        return _one(array[()])
    first = [_one(x) for x in array.reshape(-1)[:shown]]
    if array.size > shown:
        return f"[{', '.join(first)}, …]"
    return _nested(first, array.shape)


def _nested(texts: list[str], shape: tuple[int, ...]) -> str:
    for n in reversed(shape[1:]):
        texts = [f"[{', '.join(texts[k : k + n])}]" for k in range(0, len(texts), n)] if n else []
    return f"[{', '.join(texts)}]"


def _one(x: Any) -> str:
    if x.dtype.kind == "c":
        return f"{x.real:.6g}{x.imag:+.6g}i"
    return str(bool(x)).lower() if x.dtype.kind == "b" else str(int(x)) if x.dtype.kind in "iu" else f"{float(x):.6g}"
