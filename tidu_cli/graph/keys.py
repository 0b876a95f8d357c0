"""Keys: the names of graph inputs and outputs.

A key is a user's name, or the tangent or the cotangent of a key in a numbered pass. Nesting is kept flat,
as a name and a path of signed pass numbers, so that no operation recurses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidu_cli.errors import KeyTextError
from tidu_cli.frozen import Frozen

MAX_NESTING = 64
"""How many tangents and cotangents one key may nest."""

MAX_PASS = 2**53 - 1
"""The greatest pass number: the greatest integer that every JSON reader keeps exactly."""

_PATH = r"(?:@-?[1-9][0-9]*)*"
_NUMBER = "[1-9][0-9]{0,15}"
DIGEST = "sha256:[0-9a-f]{64}"
"""The text of a digest."""


class Key(Frozen):
    """A user's `name`, under a `path` of passes: +p is *tangent in pass p*, -p *cotangent in pass p*.

    The innermost step comes first: the text form `x@-1@2` is `Key("x", (-1, 2))`, the tangent in pass 2
    of the cotangent in pass 1 of `x`.
    """

    name: str
    path: tuple[int, ...] = ()

    def tangent(self, pass_number: int) -> Key:
        """The key of this key's tangent in a pass. Raises KeyTextError past 64 levels."""
        if len(self.path) >= MAX_NESTING:
            raise KeyTextError(f"key '{self}' nests {MAX_NESTING} passes already, and more are not supported")
        return Key(self.name, (*self.path, pass_number))

    def cotangent(self, pass_number: int) -> Key:
        """The key of this key's cotangent in a pass. Raises KeyTextError past 64 levels."""
        return self.tangent(-pass_number)

    def dual(self) -> Key:
        """The cotangent for a tangent, and the tangent for a cotangent, of the same pass."""
        return Key(self.name, (*self.path[:-1], -self.path[-1]))

    def __str__(self) -> str:
        """The text form: `@` within the name is doubled."""
        return self.name.replace("@", "@@") + "".join(f"@{step}" for step in self.path)


def parse_key(text: str) -> Key:
    """Read the text form of a key: `x`, `x@1`, `y@-1`, `x@-1@2`, with `@@` for an `@` within the name.

    Raises KeyTextError if an `@` is neither doubled nor followed by a pass number.
    """
    # The name ends at the first @ that is not one of a pair, counting pairs from the left of each run.
    at = 0
    while (at := text.find("@", at)) >= 0 and text.startswith("@@", at):
        at += 2
    name, path = (text, "") if at < 0 else (text[:at], text[at:])
    if path and not re.fullmatch(_PATH, path):
        raise KeyTextError(
            f"malformed key '{text}': after '@' comes a pass number, such as x@1 or y@-1; an @ within a name is doubled: @@"
        )
    steps = tuple(_checked_step(step, text) for step in path.split("@")[1:])
    if len(steps) > MAX_NESTING:
        raise KeyTextError(f"key of '{name}' nests {len(steps)} passes; the most is {MAX_NESTING}")
    return Key(_checked_name(name.replace("@@", "@")), steps)


def key_from_json(value: object) -> Key:
    """Read the JSON form: a string, or `{"tangent": {"of": KEY, "pass": p}}`, or the same with "cotangent".

    Raises KeyTextError if the value is of another form, a pass is not a positive integer, or keys nest deeper than 64.
    """
    path: list[int] = []
    while not isinstance(value, str):
        kind, inner = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else ("", None)
        if kind not in ("tangent", "cotangent") or not isinstance(inner, dict) or set(inner) != {"of", "pass"}:
            raise KeyTextError('a key is a string, {"tangent": {"of": KEY, "pass": p}} or {"cotangent": {...}}')
        pass_number = checked_pass(inner["pass"])
        path.append(pass_number if kind == "tangent" else -pass_number)
        if len(path) > MAX_NESTING:
            raise KeyTextError(f"a key nests deeper than {MAX_NESTING} passes")
        value = inner["of"]
    return Key(_checked_name(value), tuple(reversed(path)))


def key_to_json(key: Key) -> object:
    """The JSON form of a key: the inverse of `key_from_json`."""
    value: object = key.name
    for step in key.path:
        value = {"tangent" if step > 0 else "cotangent": {"of": value, "pass": abs(step)}}
    return value


def checked_pass(value: object) -> int:
    """`value` as a pass number. Raises KeyTextError unless it is an integer from 1 to 2**53 - 1 (not a bool)."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise KeyTextError(f"a pass is a positive integer, not {value!r}")
    if not 1 <= value <= MAX_PASS:
        raise KeyTextError(f"a pass is an integer from 1 to 2**53 - 1, not {value}")
    return value


def is_digest(key: Key) -> bool:
    """Whether a key has the form of a digest, `sha256:` and 64 digits, which names a value where no output has that key."""
    return not key.path and re.fullmatch(DIGEST, key.name) is not None


def passes_from_json(value: object) -> dict[int, str]:
    """Read the identities of passes, `{"1": "sha256:HEX"}`. Raises KeyTextError if it is of another form."""
    if not isinstance(value, dict):
        raise KeyTextError('it is an object from pass numbers to identities, such as {"1": "sha256:..."}')
    passes = {}
    for number, identity in value.items():
        if not re.fullmatch(_NUMBER, number):
            raise KeyTextError(f"{number[:40]!r} is not a pass number, an integer from 1 to 2**53 - 1 as text")
        if not isinstance(identity, str) or not re.fullmatch(DIGEST, identity):
            raise KeyTextError(f"the identity of pass {number} is sha256: and 64 digits of 0-9a-f")
        passes[checked_pass(int(number))] = identity
    return passes


def passes_to_json(passes: Mapping[int, str]) -> dict[str, str]:
    """The JSON form of identities of passes: the inverse of `passes_from_json`."""
    return {str(number): passes[number] for number in sorted(passes)}


def _checked_step(digits: str, text: str) -> int:
    # int() of an endless string of digits is slow, and Python refuses it past 4,300.
    if len(digits) > 17:
        raise KeyTextError(f"malformed key '{text[:40]}': a pass is at most 2**53 - 1")
    step = int(digits)
    checked_pass(abs(step))
    return step


def _checked_name(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise KeyTextError(f"key name {name!r} holds half of a surrogate pair, which is not Unicode text") from None
    return name
