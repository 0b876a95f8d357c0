"""How pictures are laid out so that they can be read: from above or from the left, and with as much open as a screen shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from tidu_cli.render.dot import draw
from tidu_cli.render.groups.scene import Forest, opened_to_fit

SCREEN = (1380, 660)
"""The room for a picture, in pixels, on a page of 1440 by 900."""

LEGIBLE = 9 / 11
"""The least scale: then text of the size 11 has nine pixels."""

STRIP = 0.6
"""Below this scale a small picture, too, is shown as boxes."""

PLAIN = 60
"""Pictures of more inputs, nodes and outputs than this are shown as boxes."""

_ROOMS = (18, 16, 14, 12, 10, 8, 6)
"""So many boxes a picture has, or fewer, where those cannot be read."""

_SIZE = re.compile(r'<svg width="([\d.]+)pt" height="([\d.]+)pt"')


def scale(svg: str) -> float:
    """How much of its size a picture has that fills the screen."""
    found = _SIZE.search(svg)
    assert found is not None
    return min(room / max(1.0, float(size)) for room, size in zip(SCREEN, found.groups(), strict=True))


def svgs(texts: Sequence[str]) -> list[str]:
    """The drawings of DOT texts, all by one run of Graphviz. Raises TiduError."""
    if not texts:
        return []
    drawn = draw("".join(texts), "svg", otherwise="").decode()
    return ["<svg" + each.partition("</svg>")[0] + "</svg>" for each in drawn.split("<svg")[1:]]


def laid_out(texts: Callable[[bool], Sequence[str]]) -> list[tuple[str, bool]]:
    """The drawings of these texts, each from above or from the left, as it is larger; and whether it goes from the left."""
    above, beside = (svgs(texts(wide)) for wide in (False, True))
    return [(a, False) if scale(a) >= scale(b) else (b, True) for a, b in zip(above, beside, strict=True)]


def _one(text: Callable[[set[str], bool], str], chosen: set[str], wide: bool) -> Sequence[str]:
    return [text(chosen, wide)]


def opened(found: Forest, text: Callable[[set[str], bool], str], given: Sequence[str] = ()) -> tuple[set[str], bool]:
    """The groups that are open in the overview, besides those given: as many as can be read. And whether it goes from the left."""
    best: tuple[float, set[str], bool] = (0.0, set(), False)
    for room in _ROOMS:
        chosen = opened_to_fit(found, room, given)
        ((svg, wide),) = laid_out(partial(_one, text, chosen))
        if scale(svg) > best[0] * 1.01:
            best = scale(svg), chosen, wide
        if best[0] >= LEGIBLE:
            break
    return best[1], best[2]
