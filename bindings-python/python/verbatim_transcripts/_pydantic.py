"""Schemas of pydantic for transcripts and segments. Only pydantic imports this module."""

from __future__ import annotations

from pydantic_core import core_schema as core

from ._native import Segment, Segments, Transcript


def _object(fields: dict[str, core.CoreSchema], optional: tuple[str, ...] = ()) -> core.CoreSchema:
    return core.typed_dict_schema(
        {name: core.typed_dict_field(schema, required=name not in optional) for name, schema in fields.items()}
    )


def _segment_object() -> core.CoreSchema:
    time = core.float_schema()
    timed: dict[str, core.CoreSchema] = {"text": core.str_schema(), "start": time, "duration": time}
    return _object({**timed, "words": core.list_schema(_object(timed))}, ("words",))


def _metadata_object() -> core.CoreSchema:
    texts = ("author_id", "author_url", "published_at", "thumbnail_url", "description")
    live = core.literal_schema(["not_live", "upcoming", "live", "was_live"])
    return _object({**dict.fromkeys(texts, core.str_schema()), "live": live}, (*texts, "live"))


def _track_object() -> core.CoreSchema:
    return _object(
        {
            "language": core.str_schema(),
            "kind": core.literal_schema(["human", "generated", "translated"]),
            "name": core.nullable_schema(core.str_schema()),
            "original": core.bool_schema(),
        }
    )


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
            "metadata": _metadata_object(),
            "chapters": core.list_schema(_object({"title": text, "start": core.float_schema()})),
            "tracks": core.list_schema(_track_object()),
            "transcript": core.list_schema(_segment_object()),
        },
        ("metadata", "chapters", "tracks"),
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


def segments_schema(cls: type[Segments]) -> core.CoreSchema:
    """The segments of a transcript, or a list of segments, which is equal to them."""
    items = core.list_schema(segment_schema(Segment))
    return core.json_or_python_schema(
        json_schema=items,
        python_schema=core.union_schema([core.is_instance_schema(cls), items]),
        serialization=core.plain_serializer_function_ser_schema(list, return_schema=items),
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
