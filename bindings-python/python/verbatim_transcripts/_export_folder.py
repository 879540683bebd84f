"""Files of an export: ``PLATFORM/VIDEO.LANGUAGE.FORMAT`` in a folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pathlib

    from ._native import Transcript

_FORMATS = ("json", "txt", "md", "srt", "vtt")


def check_format(format: str) -> None:
    """Raises `ValueError` for an unknown format."""
    if format not in _FORMATS:
        raise ValueError(f"format must be 'json', 'txt', 'md', 'srt' or 'vtt', not {format!r}")


def write_page(
    folder: str | os.PathLike[str], format: str, page: Iterable[tuple[str, str, str, Transcript, str]]
) -> set[pathlib.Path]:
    """Writes one page of exports: platform, video, name, transcript and JSON; returns the paths."""
    import pathlib

    written: set[pathlib.Path] = set()
    for platform, video, name, transcript, json in page:
        path = pathlib.Path(folder) / platform / f"{video}.{name}.{format}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if format == "json":
            path.write_text(json, encoding="utf-8")
        else:
            transcript.save(path)
        written.add(path)
    return written


def json_files(folder: str | os.PathLike[str]) -> list[pathlib.Path]:
    """The JSON files in a folder and its subfolders, in order.

    Raises `OSError` if it is no folder.
    """
    import pathlib

    folder = pathlib.Path(folder)
    # `rglob` yields nothing for a folder that does not exist.
    folder.stat()
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    return sorted(folder.rglob("*.json"))
