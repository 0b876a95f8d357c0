"""Documents as JSON: reading, with exact numbers, and writing."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NoReturn

from tidu_cli.errors import DocumentError
from tidu_cli.formats.files import Source, repeated
from tidu_cli.formats.nodes.listed import GraphWriter, PackedNodes
from tidu_cli.graph.graph import Case
from tidu_cli.graph.text import number, to_be_shortened
from tidu_cli.graph.types import Type, leaves
from tidu_cli.watching import Watched

# JSON to plain data, in the strict form that documents use, which means the same to every reader.
#
# That is UTF-8, no key twice in one object, no NaN literals, one value and nothing after it. Nothing here knows what a document is.


# The numbers of values in JSON: rounded once where a shorter float than a double is due, and none that is beyond all of them.


SHORT = frozenset({"f16", "bf16", "f32", "c64"})
"""The dtypes for whose sake a reader of JSON looks at the text of numbers, which takes it longer."""


def wants_text(text: str | bytes, types: Iterable[Type | None]) -> bool:
    """Whether values of these types may want the text of their numbers, or typed data among them may."""
    if ('"type"' if isinstance(text, str) else b'"type"') in text:  # type: ignore[operator]
        return True
    return any(leaf.dtype in SHORT for type_ in types if type_ is not None for _, leaf in leaves(type_))


def settled(value: object) -> object:
    """Plain data with plain floats, where some may be `Beside`: in constant data those that round to its dtype."""
    if isinstance(value, float):
        return float(value)
    if isinstance(value, list):
        return [settled(x) for x in value]
    if not isinstance(value, dict):
        return value
    type_, data = value.get("type"), value.get("data")
    if isinstance(type_, str) and isinstance(data, list) and type_.partition("[")[0] in SHORT:
        value = {**value, "data": [to_be_shortened(x) if isinstance(x, float) else x for x in data]}
    return {key: settled(x) for key, x in value.items()}


def require_finite(value: object, place: str, text: str | bytes) -> None:
    """Raises DocumentError if some number of a value that was read from this JSON is beyond every float."""

    def refuse_infinite(digits: str) -> float:
        if math.isinf(float(digits)):
            shown = digits if len(digits) <= 40 else f"{digits[:37]}..."
            raise DocumentError(f'{place}: the number {shown} is beyond every float; if it is meant, write "Infinity"')
        return 0.0

    if not _is_finite(value):
        json.loads(text, parse_float=refuse_infinite)


def _is_finite(value: object) -> bool:
    """Whether no float in nested lists and objects is infinite: such as JSON has come from numbers too great."""
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if not isinstance(value, list):
        return value not in (math.inf, -math.inf)
    try:
        if math.isfinite(sum(value)):  # which takes no time beside reading them
            return True
    except (TypeError, OverflowError):
        pass  # lists, text, integers that are no floats: one by one
    return all(map(_is_finite, value))


# JSON as text: written with characters as they are but for those that steer terminals; what is wrong with it in plain words.


_STEERING = "[\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]"
"""Delete, the controls of Latin-1, ends of lines, and what says from which side to read. Python's json escapes those of ASCII."""


def json_text(value: object, indent: int | None = None) -> str:
    """The text of plain data. Raises ValueError for floats that are not finite."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    # Only strings hold such characters, and an escape there stands for the same.
    return text if text.isascii() and "\x7f" not in text else re.sub(_STEERING, lambda match: f"\\u{ord(match[0]):04x}", text)


_WORDS = {
    "Expecting value": "a value is missing",
    "Expecting property name enclosed in double quotes": "a key in double quotes is missing",
    "Expecting ',' delimiter": "a comma or a closing bracket is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Illegal trailing comma before end of object": "a comma has nothing after it",
    "Illegal trailing comma before end of array": "a comma has nothing after it",
    "Invalid control character at": "a string holds a control character",
}


def syntax_error(error: ValueError, what: str = "value") -> str:
    """What `json.loads`, or the decoding before it, has against the text of `what`, and where."""
    return f"malformed JSON: {_fault(error, what)}"


def _fault(error: ValueError, what: str) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"invalid UTF-8 at byte {error.start}"
    if not isinstance(error, json.JSONDecodeError):  # int() refuses to read thousands of digits
        return "an integer has too many digits"
    place = f"line {error.lineno}, column {error.colno}"
    if not error.doc.strip():
        return f"the {what} is empty"
    if error.msg == "Extra data":
        return f"more data after the {what} at {place}" + "; a file or pipe holds one document" * (what == "document")
    if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string"):
        return f"ends within the {what} at {place}; is it cut off?"
    return f"{_WORDS.get(error.msg, f'{error.msg[0].lower()}{error.msg[1:]}')} at {place}"


BLOCK = 2**20
"""JSON comes in by so many bytes."""

LARGE = 2**17
"""From so many bytes on JSON is read in pieces, if it can be."""

# In UTF-8 text only escapes can make half of a surrogate pair, and they are rare enough to look closer at.
_SURROGATE_ESCAPE = rb"\\u[dD][89a-fA-F]"


def parsed(source: Source) -> object:
    """The plain data of a source, read to its end, with long lists of nodes `Listed`. Raises DocumentError if it is malformed."""
    data, has_begun = bytearray(), False
    while block := source.read(BLOCK):  # one read of all would hold all twice
        if not has_begun and not block.isspace():
            _check_beginning(block)
            has_begun = True
        if b"\0" in block:  # a device, perhaps, which has no end
            raise DocumentError("malformed JSON: holds a byte 0, which is in no JSON text")
        data += block
    if not has_begun:
        raise DocumentError("empty; expected a document in JSON or msgpack")
    return _plain(data, source.require_room_for_json)


def _check_beginning(data: bytes) -> None:
    """Raises DocumentError if what begins so is no document, however it goes on, and whether or not it ends."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DocumentError("the text is UTF-16; documents are UTF-8 without a byte order mark")
    if data.startswith(b"\xef\xbb\xbf"):
        raise DocumentError("begins with a UTF-8 byte order mark; save the document without one")
    if not data.lstrip().startswith((b"{", b"[")):
        raise DocumentError("neither JSON, which begins with '{', nor msgpack, which begins with a map")


def _plain(data: bytearray, require_room: Callable[[bytearray], None]) -> object:
    beside: list[float] = []

    def finite_float(digits: str) -> float:
        value = number(digits)
        if math.isinf(value):
            raise DocumentError(f'the number {digits[:40]} is beyond every float; in constant data write "Infinity" or "-Infinity"')
        if type(value) is not float:
            beside.append(value)
        return value

    strict: dict[str, Any] = {"parse_constant": _refuse_constant, "parse_float": finite_float}
    keys_once: dict[str, Any] = {"object_pairs_hook": _json_object}
    may_have_halves = b"\\u" in data and re.search(_SURROGATE_ESCAPE, data)
    if len(data) >= LARGE and not may_have_halves:
        from tidu_cli.formats.nodes.pieces import parsed_in_pieces

        plain = parsed_in_pieces(data, strict, keys_once, require_room)
        if plain is not None and not beside:
            return plain
    require_room(data)
    try:
        value: object = json.loads(data.decode(), **strict, **keys_once)
        if beside:
            value = settled(value)
        if may_have_halves:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise DocumentError(f"malformed JSON: a string holds {half}, half of a surrogate pair, which is not Unicode text") from None
    except RecursionError:
        raise DocumentError("nests too deeply") from None
    except ValueError as error:
        raise DocumentError(syntax_error(error, "document")) from None
    return value


def _json_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise DocumentError(f"an object has the key {repeated(key for key, _ in pairs)!r} twice")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise DocumentError(f'malformed JSON: {name} is not JSON; in constant data write "{name}" in quotes')


# Documents as JSON, in a layout for readers: a line for each input, node and output.


INDENT = " " * 16
"""Where the second input, node or output of a graph begins: under the first."""


def texts(before: Mapping[str, Any], writers: Sequence[GraphWriter], after: Mapping[str, Any], watched: Watched) -> Iterator[str]:
    """The text of a document with these fields before and after its graphs."""
    opening = "{"
    for name, value in before.items():
        yield f"{opening}{json_text(name)}: {_LAYOUTS.get(name, json_text)(value)},\n"
        opening = " "
    yield ' "graphs": [\n'
    for k, writer in enumerate(writers):
        if k:
            yield ",\n"
        yield f"   {json_text(writer.head())[:-1]},\n"
        yield f'    "inputs":  {_lines(map(json_text, writer.inputs()))},\n'
        yield '    "nodes":   '
        if writer.listed:
            yield from _listed(writer, watched)
        else:
            yield _packed(writer.packed())
        yield f',\n    "outputs": {_lines(map(json_text, writer.outputs()))}}}'
    yield "]"
    for name, values in after.items():
        yield f",\n {json_text(name)}: {_lines(map(json_text, values), ' ' * (len(name) + 6))}"
    yield "}\n"


def _lines(entries: Iterable[str], indent: str = INDENT) -> str:
    return f"[{(',' + chr(10) + indent).join(entries)}]"


def _object(fields: Mapping[str, Any], indent: int, opening: str = "{", text: Callable[[Any], str] = json_text) -> str:
    """An object with a line for each field."""
    return opening + (",\n" + " " * indent).join(f"{json_text(name)}: {text(value)}" for name, value in fields.items()) + "}"


def _declaration(record: Mapping[str, Any]) -> str:
    if isinstance(record.get("fields"), str) or "views" not in record:
        return json_text(record)
    views = _object(record["views"], 6, "{\n      ", lambda view: _object(view, 8))
    return f'{{"fields": {json_text(record["fields"])},\n    "views": {views}}}'


_LAYOUTS: Mapping[str, Callable[[Any], str]] = {
    "types": lambda types: _object(types, 2, "{\n  ", _declaration),
    # A line for each field of a definition.
    "ops": lambda ops: _object(ops, 2, "{\n  ", lambda definition: _object(definition, 4)),
    "passes": lambda passes: _object(passes, 12),
}


def _packed(nodes: PackedNodes) -> str:
    table = _lines(map(json_text, nodes.table), INDENT + " " * 10)
    columns: dict[str, Iterable[object]] = {"code": chain.from_iterable(nodes.code), "args": nodes.args, "external": nodes.external}
    return (",\n" + INDENT).join([f'{{"table": {table}', *(f'"{name}": {json_text(list(v))}' for name, v in columns.items())]) + "}"


def _listed(writer: GraphWriter, watched: Watched) -> Iterator[str]:
    separator = ",\n" + INDENT
    opening = "["
    for nodes in _node_texts(writer, watched):
        yield opening
        yield separator.join(nodes)
        opening = separator
    yield "]" if opening == separator else "[]"


def _node_texts(writer: GraphWriter, watched: Watched) -> Iterator[list[str]]:
    # The text of a node is that of its case, made once, around its inputs.
    cases, common = writer.graph.cases, writer.common()
    ends = {number: _ends(cases[number], fields) for number, fields in common.items()}
    detached, node_meta, types, external = writer.detached, writer.graph.node_meta, writer.types, _external(writer)
    for block in writer.blocks():
        inputs = [str(a) if a >= 0 else external(a) for a in block.args]
        made: list[str] = []
        end = 0
        for i, code in enumerate(watched(block.code), block.first):
            before, after, result_types, arity = ends[code]
            start, end = end, end + arity
            text = f"{before}{', '.join(inputs[start:end])}{after}"
            if types or (detached and writer.needs_types(block.args[start:end])):
                text += result_types
            if i in node_meta:
                text += f', "meta": {json_text(node_meta[i])}'
            made.append(text + "}")
        yield made


def _external(writer: GraphWriter) -> Callable[[int], str]:
    """The texts of references to other graphs, by arguments."""
    if writer.detached:
        return lambda argument: json_text(writer.reference(argument))
    graph, value = writer.graph.external.graph, writer.graph.external.value
    return lambda argument: f"[{graph[~argument]}, {value[~argument]}]"


def _ends(case: Case, common: Mapping[str, object]) -> tuple[str, str, str, int]:
    fields = json_text(common)[1:-1]
    types = json_text([str(t) for t in case.results])
    return (
        f'{{"op": {json_text(case.op)}, "inputs": [',
        "]" + (f", {fields}" if fields else ""),
        f', "types": {types}',
        len(case.operands),
    )
