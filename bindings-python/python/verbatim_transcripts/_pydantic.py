"""Schemas of pydantic for transcripts and segments. Only pydantic imports this module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_core import core_schema as core

if TYPE_CHECKING:
    from ._native import Segment, Transcript


def _object(fields: dict[str, core.CoreSchema], optional: tuple[str, ...] = ()) -> core.CoreSchema:
    return core.typed_dict_schema(
        {name: core.typed_dict_field(schema, required=name not in optional) for name, schema in fields.items()}
    )


def _segment_object() -> core.CoreSchema:
    return _object({"text": core.str_schema(), "start": core.float_schema(), "duration": core.float_schema()})


def _transcript_object() -> core.CoreSchema:
    text, flag = core.str_schema(), core.bool_schema()
    return _object(
        {
            "platform": text,
            "video_id": text,
            "title": core.nullable_schema(text),
            "author": core.nullable_schema(text),
            "duration": core.nullable_schema(core.float_schema()),
            "language": text,
            "kind": core.literal_schema(["human", "generated", "translated"]),
            "is_generated": flag,
            "track_name": core.nullable_schema(text),
            "original": flag,
            "source": text,
            "from_cache": flag,
            "revision": core.int_schema(ge=0),
            "transcript": core.list_schema(_segment_object()),
        }
    )


def segment_schema(cls: type[Segment]) -> core.CoreSchema:
    """A segment, or an object with its fields."""
    fields = _segment_object()
    read = core.no_info_after_validator_function(lambda value: cls(**value), fields)
    return core.json_or_python_schema(
        json_schema=read,
        python_schema=core.union_schema([core.is_instance_schema(cls), read]),
        serialization=core.plain_serializer_function_ser_schema(cls._asdict, return_schema=fields),
    )


def transcript_schema(cls: type[Transcript]) -> core.CoreSchema:
    """A transcript, or the object of its `to_dict`."""
    fields = _transcript_object()
    read = core.no_info_after_validator_function(cls.from_dict, fields)
    return core.json_or_python_schema(
        json_schema=read,
        python_schema=core.union_schema([core.is_instance_schema(cls), read]),
        serialization=core.plain_serializer_function_ser_schema(cls.to_dict, return_schema=fields),
    )
