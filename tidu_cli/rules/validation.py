"""Data as pydantic models: built where `fields` is in doubt, to say what is wrong, and for JSON Schema."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    FailFast,
    Field,
    GetCoreSchemaHandler,
    PlainValidator,
    Strict,
    Tag,
    WithJsonSchema,
)
from pydantic import ValidationError as Invalid
from pydantic_core import PydanticCustomError, core_schema

from tidu_cli.errors import TiduError, TypeRuleError, did_you_mean
from tidu_cli.rules import fields

D = TypeVar("D", bound=fields.Data)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class _FailFast(FailFast):
    __hash__ = object.__hash__  # as members of unions hash


def model_of(data: type[fields.Data]) -> type[BaseModel]:
    """The model of a class, by the same name, with its fields, defaults and validators."""
    layout = fields.layout_of(data)
    layout.model = layout.model or _model(data, layout)
    return cast(type[BaseModel], layout.model)


def _model(data: type[fields.Data], layout: fields.Layout) -> type[BaseModel]:
    namespace = {
        **layout.defaults,
        **{name: value for name, value in fields.members_of(data).items() if fields.is_pydantics(value) or name == "model_config"},
        "__module__": data.__module__,
        "__qualname__": data.__qualname__,
        "__doc__": data.__doc__,
        "__annotations__": {name: _pydantics(annotation) for name, annotation in layout.annotations.items()},
    }
    return types.new_class(data.__name__, (_Model,), exec_body=lambda body: body.update(namespace))


def json_schema(data: type[fields.Data]) -> dict[str, Any]:
    """The JSON Schema of the file form."""
    return model_of(data).model_json_schema()


def read_by_model(data: type[D], plain: object, context: Any) -> D:
    """Data from their file form. Raises pydantic's ValidationError."""
    return _made(data, model_of(data).model_validate(plain, context=context))


def _made(data: type[D], model: Any) -> D:
    return fields.made(data, {name: getattr(model, name) for name in fields.field_names(data)})


def validated(attrs: type[fields.Data], data: Mapping[str, object], records: fields.Records) -> dict[str, object]:
    """The values of the fields of attrs. Raises TypeRuleError for missing, unknown and malformed ones."""
    try:
        return vars(read_by_model(attrs, data, records))
    except Invalid as error:
        raise TypeRuleError(_first_complaint(error, attrs)) from None


class _Nested:
    """pydantic's annotation of data within other data."""

    def __init__(self, data: type[fields.Data]) -> None:
        self.data = data

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        def read(value: Any, model: Callable[[Any], Any]) -> fields.Data:
            return value if isinstance(value, self.data) else _made(self.data, model(value))

        return core_schema.no_info_wrap_validator_function(read, handler.generate_schema(model_of(self.data)))


def _annotations(kind: object) -> Iterable[object]:
    """What says the same as one of the kinds of `fields` to pydantic."""
    if isinstance(kind, fields.Parsed):
        return _parsed(kind)
    if isinstance(kind, fields.After):
        return AfterValidator(kind.check), *([] if kind.schema is None else [Field(json_schema_extra=dict(kind.schema))])
    if isinstance(kind, fields.Bounded):
        return [_constrained(ge=kind.ge, gt=kind.gt, lt=kind.lt)]
    if isinstance(kind, fields.Sized):
        return [_constrained(min_length=kind.least, max_length=kind.most)]
    return [WithJsonSchema(dict(kind.schema)) if isinstance(kind, fields.Described) else kind]


def _parsed(kind: fields.Parsed) -> Iterable[object]:
    def read(value: Any, info: Any) -> Any:
        # A TiduError would leave pydantic without its place; as a custom error it is told with one.
        try:
            return kind.parse(value, info.context or {})
        except TiduError as error:
            raise PydanticCustomError("tidu", "{reason}", {"reason": str(error)}) from None

    return PlainValidator(read), WithJsonSchema(dict(kind.schema))


def _constrained(**constraints: Any) -> object:
    return Field(**{name: value for name, value in constraints.items() if value is not None})


def _pydantics(annotation: Any) -> Any:
    """An annotation with pydantic's in the place of kinds."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, fields.Data):
        return Annotated[annotation, _Nested(annotation)]
    if origin is Annotated:
        return Annotated[(_pydantics(parts[0]), *(further for kind in parts[1:] for further in _annotations(kind)))]
    if origin in (Union, types.UnionType):
        members = [_pydantics(part) for part in parts]
        if get_origin(parts[0]) is not list:
            return Union[tuple(members)]  # noqa: UP007 - there is no other way to write one of a list
        # Of a list or an object, so that a value is judged as what it is.
        form = Discriminator(lambda value: "list" if isinstance(value, list) else "object")
        return Annotated[Annotated[members[0], Tag("list")] | Annotated[members[1], Tag("object")], form]
    if origin is list:
        return Annotated[list[_pydantics(*parts)], _FailFast()]  # type: ignore[misc]
    if origin in (tuple, dict):
        return origin[tuple(part if part is Ellipsis else _pydantics(part) for part in parts)]
    return _STRICT.get(annotation, annotation)


# Nothing is converted, but lists to tuples, and integers to floats, which JSON does not tell apart.
_STRICT: dict[Any, Any] = {
    bool: Annotated[bool, Strict()],
    int: Annotated[int, Strict(), Field(ge=-fields.INTEGER_LIMIT, lt=fields.INTEGER_LIMIT)],
    float: Annotated[float, Strict(), Field(allow_inf_nan=False)],
    str: Annotated[str, Strict()],
    bytes: Annotated[bytes, Strict()],
}


def _first_complaint(error: Invalid, attrs: type[fields.Data]) -> str:
    errors = error.errors(include_url=False)
    # A misspelt attr is unknown and missing at once: unknown says which.
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    where = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        return f"unknown attr '{where}'{did_you_mean(where, list(fields.field_names(attrs)))}"
    if first["type"] == "missing":
        return f"missing attr '{where}'"
    cause = first.get("ctx", {}).get("error")
    message = str(cause) if isinstance(cause, TiduError | ValueError) else first["msg"]
    return f"attr '{where}': {message[0].lower()}{message[1:]}"
