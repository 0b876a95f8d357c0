"""Numbers as one types them on a command line, in the words of JSON: `.5`, `+1`, `1.`, `inf`, `1+2j`, and `1,2,3` for a vector."""

from __future__ import annotations

import re

_FLOAT = r"(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)"
_REAL = re.compile(rf"[+-]?{_FLOAT}", re.IGNORECASE | re.ASCII)
_IMAGINARY = re.compile(rf"([+-]?{_FLOAT}?)j", re.IGNORECASE | re.ASCII)
_COMPLEX = re.compile(rf"([+-]?{_FLOAT})([+-]{_FLOAT}?)j", re.IGNORECASE | re.ASCII)
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")|([^\s,\[\]{}:"]+)')
_WORDS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}


def as_json(text: str) -> str | None:
    """JSON of a value whose numbers may be spelled as Python spells them; numbers between commas alone are a vector.

    What has quotation marks or brackets is for the parser of JSON to judge, numbers aside. None for words that are no numbers.
    """
    strange = False

    def spelled(token: re.Match[str]) -> str:
        nonlocal strange
        if token[1]:
            return token[1]
        found = _number(token[2])
        strange = strange or found is None
        return found or token[2]

    found = _TOKEN.sub(spelled, text)
    if strange:
        return None
    is_vector = "," in text and not any(bracket in text for bracket in '[{"')
    return f"[{found.strip().removesuffix(',')}]" if is_vector else found


def _number(word: str) -> str | None:
    """The JSON of a number, or of true, false and null."""
    if word in _WORDS:
        return _WORDS[word]
    if _REAL.fullmatch(word):
        return _real(word)
    bare = word[1:-1] if word[0] == "(" and word[-1] == ")" else word  # as Python prints complex numbers
    if imaginary := _IMAGINARY.fullmatch(bare):
        return f'{{"re": 0.0, "im": {_part(imaginary[1])}}}'
    if both := _COMPLEX.fullmatch(bare):
        return f'{{"re": {_part(both[1])}, "im": {_part(both[2])}}}'
    return None


def _part(word: str) -> str:
    """A part of a complex number: a float, of which zero has a sign."""
    found = _real(f"{word}1" if word in ("", "+", "-") else word)
    return found if any(c in found for c in '.e"') else f"{found}.0"


def _real(word: str) -> str:
    """A number's JSON: its sign, digits before a point, and digits after it where there is a point. The digits stay."""
    sign, size = ("-" if word[0] == "-" else ""), word.lstrip("+-").lower()
    if size[0] in "in":
        return '"NaN"' if size == "nan" else f'"{sign}Infinity"'
    digits, e, exponent = size.partition("e")
    whole, point, fraction = digits.partition(".")
    decimals = f".{fraction or 0}" if point else ""
    return f"{sign}{whole.lstrip('0') or 0}{decimals}{e}{exponent}"
