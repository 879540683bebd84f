"""Exports of an archive to a folder, ``PLATFORM/VIDEO.LANGUAGE.FORMAT``, and imports of a folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ._errors import InvalidInput, StorageCorrupt, VerbatimError
from ._outcomes import ImportOutcome

if TYPE_CHECKING:
    import pathlib

    from ._native import Engine, Transcript

#: Tracks read at a time.
PAGE = 100

_FORMATS = ("json", "txt", "md", "srt", "vtt")


def _check_format(format: str) -> None:
    """Raises `ValueError` for an unknown format."""
    if format not in _FORMATS:
        raise ValueError(f"format must be 'json', 'txt', 'md', 'srt' or 'vtt', not {format!r}")


def _write_page(
    folder: str | os.PathLike[str], format: str, page: Iterable[tuple[str, str, str, Transcript, str]]
) -> set[pathlib.Path]:
    """Writes one page of exports: platform, video, name, transcript and JSON; returns the paths."""
    import pathlib

    written: set[pathlib.Path] = set()
    for platform, video, name, transcript, json in page:
        path = pathlib.Path(os.path.expanduser(folder)) / platform / f"{video}.{name}.{format}"
        path.parent.mkdir(parents=True, exist_ok=True)
        # A file is always complete. `save` selects the format by the suffix, and an import reads `.json`.
        draft = path.with_name(f".{path.name}.part" if format == "json" else f".{path.name}.part.{format}")
        try:
            if format == "json":
                draft.write_text(json, encoding="utf-8")
            else:
                transcript.save(draft)
            os.replace(draft, path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        written.add(path)
    return written


def _count(written: set[pathlib.Path], unreadable: list[VerbatimError], unlisted: int) -> int:
    """Returns the number of files.

    :param unreadable: an exception for each transcript that was not exported.
    :param unlisted: the number of videos that no list has.
    :raises StorageCorrupt: there is one.
    """
    if unreadable:
        message = f"some transcripts cannot be read and were not exported; the first: {unreadable[0]}"
        raise StorageCorrupt(message) from unreadable[0]
    if unlisted > 0:
        raise StorageCorrupt(
            f"{unlisted} videos cannot be listed and were not exported: their rows are damaged, or of a later "
            "version of this package; restore a backup"
        )
    return len(written)


def _json_files(folder: str | os.PathLike[str]) -> list[pathlib.Path]:
    """The JSON files in a folder and its subfolders, in order.

    Raises `OSError` if it is no folder.
    """
    import pathlib

    folder = pathlib.Path(os.path.expanduser(folder))
    # `rglob` yields nothing for a folder that does not exist.
    folder.stat()
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    return sorted(folder.rglob("*.json"))


def export_files(engine: Engine, folder: str | os.PathLike[str], format: str) -> int:
    """Writes all archived transcripts that can be read to files; returns their number."""
    _check_format(format)
    written: set[pathlib.Path] = set()
    unreadable: list[VerbatimError] = []
    after: str | None = None
    while True:
        page, errors, after = engine.exports(after, PAGE).wait()
        written |= _write_page(folder, format, page)
        unreadable += errors
        if after is None:
            return _count(written, unreadable, engine.unlisted_videos().wait())


async def aexport_files(engine: Engine, folder: str | os.PathLike[str], format: str) -> int:
    """As `export_files`. The files are written on a thread of the event loop's pool."""
    from asyncio import to_thread

    _check_format(format)
    written: set[pathlib.Path] = set()
    unreadable: list[VerbatimError] = []
    after: str | None = None
    while True:
        page, errors, after = await engine.exports(after, PAGE)
        written |= await to_thread(_write_page, folder, format, page)
        unreadable += errors
        if after is None:
            return _count(written, unreadable, await engine.unlisted_videos())


def import_files(engine: Engine, folder: str | os.PathLike[str], replace: bool) -> list[ImportOutcome]:
    """Imports the JSON files in a folder and its subfolders."""
    outcomes: list[ImportOutcome] = []
    for path in _json_files(folder):
        try:
            found = engine.import_all(path.read_bytes(), replace).wait()
        except InvalidInput as error:
            raise InvalidInput(f"{path}: {error}") from error
        outcomes.extend(ImportOutcome(*each) for each in found)
    return outcomes


async def aimport_files(
    engine: Engine, folder: str | os.PathLike[str], replace: bool
) -> list[ImportOutcome]:
    """As `import_files`. The files are read on a thread of the event loop's pool."""
    from asyncio import to_thread

    outcomes: list[ImportOutcome] = []
    for path in await to_thread(_json_files, folder):
        try:
            found = await engine.import_all(await to_thread(path.read_bytes), replace)
        except InvalidInput as error:
            raise InvalidInput(f"{path}: {error}") from error
        outcomes.extend(ImportOutcome(*each) for each in found)
    return outcomes
