"""What an SVG of Graphviz shows, whatever the version that placed it: texts, and edges with their colours and dashes."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape


def content(svg: str) -> tuple[Counter[str], Counter[tuple[str, str, str]]]:
    """The texts of a picture; and its edges as (source->target, colour, dashes)."""
    plain = unescape(svg)
    edges = re.findall(r"<title>(\w+->\w+)</title>(.*?)</g>", plain, flags=re.S)
    styles = [(name, re.findall(r'stroke="(.*?)"', body), re.findall(r'stroke-dasharray="(.*?)"', body)) for name, body in edges]
    texts = Counter(re.findall(r"<text[^>]*>(.*?)</text>", plain))
    return texts, Counter((name, next(iter(colours), ""), next(iter(dashes), "")) for name, colours, dashes in styles)
