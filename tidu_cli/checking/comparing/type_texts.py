"""Types that differ, as messages tell them apart: by their names, and where these are the same, by the fields."""

from __future__ import annotations

from tidu_cli.graph.types import RecordType, Type, leaves


def told_apart(a: Type, b: Type) -> str:
    """The types of something in A and in B; of records of one name the first of their arrays that differ."""
    if str(a) != str(b):
        return f"{a} in A, {b} in B"
    ours, theirs = dict(leaves(a)), dict(leaves(b))
    path = next((path for path in (*ours, *theirs) if ours.get(path) != theirs.get(path)), None)
    if path is None:
        return f"{a} in both, {spelled_out(a)} in A, {spelled_out(b)} in B"
    one, other = (part or "missing" for part in (ours.get(path), theirs.get(path)))
    return f"{a} in both, of which {'.'.join(path)} is {one} in A, {other} in B"


def texts(a: Type, b: Type) -> dict[str, str]:
    """The texts of two types, for programs; of records of one name those of their fields."""
    same = str(a) == str(b)
    return {side: spelled_out(type_) if same else str(type_) for side, type_ in (("a", a), ("b", b))}


def spelled_out(type_: Type) -> str:
    """A type with the fields of every record in it, `{a: {x: f64[]}}`."""
    if not isinstance(type_, RecordType):
        return str(type_)
    return f"{{{', '.join(f'{name}: {spelled_out(field)}' for name, field in type_.fields)}}}"
