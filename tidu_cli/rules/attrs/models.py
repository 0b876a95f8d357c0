"""Attrs as pydantic models: built for what `fields` is in doubt of, to tell what is wrong with it, and for JSON Schema."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    PlainValidator,
    Strict,
    WithJsonSchema,
)
from pydantic import ValidationError as Invalid
from pydantic_core import PydanticCustomError, core_schema

from tidu_cli.errors import TiduError, TypeRuleError, did_you_mean
from tidu_cli.rules.attrs.fields import (
    INTEGER_LIMIT,
    Attrs,
    Kind,
    Layout,
    Records,
    Writer,
    field_names,
    is_pydantics,
    layout_of,
    made,
)

_CONFIGURATION = "model_config"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def model_of(attrs: type[Attrs]) -> type[BaseModel]:
    """The model of a class of attrs, by the same name, with its fields, defaults and validators."""
    layout = layout_of(attrs)
    if layout.model is None:
        layout.model = _model(attrs, layout)
    model: type[BaseModel] = layout.model
    return model


def _model(attrs: type[Attrs], layout: Layout) -> type[BaseModel]:
    members = {name: value for base in reversed(attrs.__mro__) for name, value in vars(base).items()}
    namespace = {
        **{name: value for name, value in members.items() if is_pydantics(value) or name == _CONFIGURATION},
        **layout.defaults,
        "__module__": attrs.__module__,
        "__qualname__": attrs.__qualname__,
        "__doc__": attrs.__doc__,
        "__annotations__": {name: _pydantics(annotation) for name, annotation in layout.annotations.items()},
    }
    return types.new_class(attrs.__name__, (_Model,), exec_body=lambda body: body.update(namespace))


def json_schema(attrs: type[Attrs]) -> dict[str, Any]:
    """The JSON Schema of the file form of attrs."""
    return model_of(attrs).model_json_schema()


def validated(attrs: type[Attrs], data: Mapping[str, object], records: Records) -> dict[str, object]:
    """The values of the fields, by the model. Raises TypeRuleError for missing, unknown and malformed ones."""
    try:
        return _values(attrs, model_of(attrs).model_validate(data, context=records))
    except Invalid as error:
        raise TypeRuleError(_first_complaint(error, attrs)) from None


def written(attrs: Attrs, *, binary: bool) -> dict[str, object]:
    """The file form of attrs that only their model can write."""
    model = model_of(type(attrs)).model_construct(**vars(attrs))
    return _lists(model.model_dump(exclude_defaults=True, context={"binary": binary}))  # type: ignore[return-value]


def nested_schema(attrs: type[Attrs], handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
    """How pydantic reads attrs within other attrs, and writes them."""

    def read(value: Any, model: Callable[[Any], Any]) -> Attrs:
        if isinstance(value, attrs):
            return value
        return made(attrs, _values(attrs, model(value)))

    def write(value: Attrs, info: core_schema.SerializationInfo) -> dict[str, object]:
        return value.to_data(binary=_is_binary(info))

    return core_schema.no_info_wrap_validator_function(
        read,
        handler(model_of(attrs)),
        serialization=core_schema.plain_serializer_function_ser_schema(write, info_arg=True),
    )


def parsed(parse: Callable[[Any, Records], Any], write: Writer, schema: Mapping[str, Any]) -> Iterable[object]:
    """pydantic's annotations of what is parsed."""

    def read(value: Any, info: Any) -> Any:
        # A TiduError would leave pydantic without its place; as a custom error it is told with one.
        try:
            return parse(value, info.context or {})
        except TiduError as error:
            raise PydanticCustomError("tidu", "{reason}", {"reason": str(error)}) from None

    def serialized(value: Any, info: core_schema.SerializationInfo) -> object:
        return write(value, _is_binary(info))

    return PlainValidator(read), PlainSerializer(serialized), WithJsonSchema(dict(schema))


def checked(check: Callable[[Any], Any], schema: Mapping[str, Any] | None) -> Iterable[object]:
    """pydantic's annotations of what a function checks."""
    return AfterValidator(check), *([] if schema is None else [Field(json_schema_extra=dict(schema))])


def constrained(**constraints: Any) -> Iterable[object]:
    """pydantic's annotation of what is constrained, where a constraint is not None."""
    return [Field(**{name: value for name, value in constraints.items() if value is not None})]


def _pydantics(annotation: Any) -> Any:
    """An annotation with pydantic's in the place of kinds."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        further = [p for part in parts[1:] for p in (part.pydantic() if isinstance(part, Kind) else [part])]
        return Annotated[(_pydantics(parts[0]), *further)]
    if origin in (Union, types.UnionType):
        return Union[tuple(map(_pydantics, parts))]  # noqa: UP007 - there is no other way to write one of a list
    if origin in (tuple, list, dict):
        return origin[tuple(part if part is Ellipsis else _pydantics(part) for part in parts)]
    return _STRICT.get(annotation, annotation)


# Nothing is converted, but lists to tuples, and integers to floats, which JSON does not tell apart.
_STRICT: dict[Any, Any] = {
    bool: Annotated[bool, Strict()],
    int: Annotated[int, Strict(), Field(ge=-INTEGER_LIMIT, lt=INTEGER_LIMIT)],
    float: Annotated[float, Strict(), Field(allow_inf_nan=False)],
    str: Annotated[str, Strict()],
}


def _values(attrs: type[Attrs], model: Any) -> dict[str, object]:
    return {name: getattr(model, name) for name in field_names(attrs)}


def _is_binary(info: core_schema.SerializationInfo) -> bool:
    return bool(info.context and info.context.get("binary"))


def _lists(value: object) -> object:
    if isinstance(value, dict):
        return {k: _lists(v) for k, v in value.items()}
    return [_lists(v) for v in value] if isinstance(value, tuple | list) else value


def _first_complaint(error: Invalid, attrs: type[Attrs]) -> str:
    errors = error.errors(include_url=False)
    # A misspelt attr is unknown and missing at once: unknown says which.
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    where = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        return f"unknown attr '{where}'{did_you_mean(where, list(field_names(attrs)))}"
    if first["type"] == "missing":
        return f"missing attr '{where}'"
    cause = first.get("ctx", {}).get("error")
    message = str(cause) if isinstance(cause, TiduError | ValueError) else first["msg"]
    return f"attr '{where}': {message[0].lower()}{message[1:]}"
