"""What is wrong with the shape of a document, in one line: the models look at what the quick check does not take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from tidu_cli.errors import DocumentError, TiduError
from tidu_cli.graph.keys import key_from_json
from tidu_cli.rules.fields import Data
from tidu_cli.rules.validation import read_by_model

D = TypeVar("D", bound=Data)


def judged_as(data: type[D], plain: object, context: object, place: tuple[str, ...] = (), within: object = None) -> D:
    """What plain data means by its model; it stands at a place of a document. Raises DocumentError."""
    try:
        return read_by_model(data, plain, context)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        reason = first.get("ctx", {}).get("error", first["msg"])
        raise DocumentError(_complaint(within or plain, (*place, *first["loc"]), first["type"], str(reason))) from None


def _complaint(plain: Any, location: Sequence[int | str], kind: str, message: str) -> str:
    # pydantic's locations, such as ("graphs", 0, "nodes", "list", 3, "op"), in the words of documents.
    value, places = plain, []
    fields: list[str] = []
    for step in location:
        if step in ("list", "object") and fields and fields[-1] in ("nodes", "code", "args"):
            continue  # the tag of a union: not a step of the data
        value = _entry(value, step)
        if isinstance(step, int) and fields and fields[-1] in _PLACES:
            places.append(f"{_PLACES[fields[-1]]} {_name(fields[-1], value, step)}")
            fields.clear()
        elif fields == ["ops"]:
            places.append(f"op '{step}'")
            fields.clear()
        else:
            fields.append(str(step))
    field = ".".join(fields)
    if kind == "missing":
        what = f"missing field '{field}'"
    elif kind == "extra_forbidden":
        what = f"unknown field '{field}'; fields of your own go under 'meta'"
    elif kind == "too_short":
        what = f"'{field}' is empty; a document has at least one graph"
    elif fields and fields[-1] in ("nodes", "code", "args") and kind in ("model_type", "dict_type"):
        what = f"'{field}' must be a list or an object"
    elif kind in ("tidu", "literal"):
        what = f"{field}: {message}" if field else message
    else:
        what = f"'{field}' {_IN_OUR_WORDS.sub(lambda match: _WORDS.get(match[0], ''), message)}" if field else "must be an object"
    return ": ".join([", ".join(places), what]) if places else what


_PLACES = {
    "graphs": "graph", "nodes": "node", "inputs": "input", "outputs": "output", "bindings": "binding", "table": "table row"
}  # fmt: skip
_WORDS = {"Input should be": "must be", "a valid dictionary": "an object", "a valid integer": "an integer", "List should": "must"}
_IN_OUR_WORDS = re.compile("|".join([*_WORDS, "valid ", r" or instance of \w+"]))


def _entry(value: Any, step: int | str) -> Any:
    try:
        return value[step]
    except (KeyError, IndexError, TypeError):
        return None


def _name(kind: str, value: Any, number: int) -> str:
    # Names where the data has them, numbers where it is too broken.
    try:
        if kind == "graphs":
            return f"'{value['name']}'" if isinstance(value["name"], str) else str(number)
        if kind in ("inputs", "outputs"):
            return f"'{key_from_json(value['key'])}'"
        return f"{number} ({value['op']})" if isinstance(value["op"], str) else str(number)
    except (KeyError, TypeError, TiduError):
        return str(number)
