"""Exports of an archive to a folder, ``PLATFORM/VIDEO/LANGUAGE.FORMAT``, and imports of a folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ._errors import ConflictError, InvalidInput, StorageCorrupt, VerbatimError
from ._outcomes import ImportOutcome

if TYPE_CHECKING:
    import pathlib

    from ._native import Engine, Transcript

#: Tracks read at a time.
PAGE = 100
#: The formats of the files.
FORMATS = ("json", "txt", "md", "srt", "vtt")
#: The file that marks a video as withdrawn.
_WITHDRAWN = "withdrawn.json"


class _FolderExport:
    """The files of an export, as the command `verbatim archive export` writes them."""

    def __init__(self, folder: str | os.PathLike[str], format: str, replace: bool) -> None:
        import pathlib

        if format not in FORMATS:
            raise ValueError(f"format must be 'json', 'txt', 'md', 'srt' or 'vtt', not {format!r}")
        self._format = format
        self._folder = pathlib.Path(os.path.expanduser(folder))
        self._replace = replace
        self._exported: set[pathlib.Path] = set()
        #: Files with other content, in the order in which they were found.
        self._kept: dict[pathlib.Path, None] = {}

    def write_page(self, page: Iterable[tuple[str, str, str, Transcript, str]]) -> None:
        """Writes one page of exports: platform, video, name, transcript and JSON."""
        for platform, video, name, transcript, json in page:
            folder = self._folder / platform / video
            withdrawal = folder / _WITHDRAWN
            if self._replace:
                withdrawal.unlink(missing_ok=True)
            elif withdrawal.exists():
                self._kept[withdrawal] = None
            path = folder / f"{name}.{self._format}"
            self._write(path, json if self._format == "json" else transcript)
            self._exported.add(path)

    def write_withdrawals(self, page: Iterable[tuple[str, str, str]]) -> None:
        """Writes one page of withdrawals: platform, video and JSON."""
        for platform, video, json in page:
            self._write(self._folder / platform / video / _WITHDRAWN, json)

    def _write(self, path: pathlib.Path, content: str | Transcript) -> None:
        import filecmp

        path.parent.mkdir(parents=True, exist_ok=True)
        # A file is always complete. `save` selects the format by the suffix, and an import reads `.json`.
        draft = path.with_name(f".{path.name}.part" if self._format == "json" else f".{path.name}.part.{self._format}")
        try:
            if isinstance(content, str):
                draft.write_text(content, encoding="utf-8")
            else:
                content.save(draft)
            if self._replace or not os.path.lexists(path):
                os.replace(draft, path)
            elif not path.is_file() or not filecmp.cmp(draft, path, shallow=False):
                self._kept[path] = None
        finally:
            draft.unlink(missing_ok=True)

    def finish(self, unreadable: list[VerbatimError], unlisted: int) -> int:
        """Returns the number of transcripts.

        :param unreadable: an exception for each transcript that was not exported.
        :param unlisted: the number of videos that no list has.
        :raises StorageCorrupt: transcripts were not exported.
        :raises FileExistsError: files were kept.
        """
        # Damage comes first: the next export reports the kept files again.
        if unreadable:
            message = f"some transcripts cannot be read and were not exported; the first: {unreadable[0]}"
            raise StorageCorrupt(message) from unreadable[0]
        if unlisted > 0:
            raise StorageCorrupt(
                f"{unlisted} videos cannot be listed and were not exported: their rows are damaged, or of a later "
                "version of this package; restore a backup"
            )
        if self._kept:
            count = len(self._kept)
            message = f"{count} files exist with other content and were kept; the option replace overwrites them"
            raise FileExistsError(errno.EEXIST, message, str(next(iter(self._kept))))
        return len(self._exported)


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
    files = sorted(folder.rglob("*.json"), key=_import_order)
    # Nothing of a withdrawn video is imported: its transcripts may be of an export before the withdrawal.
    withdrawn = {path.parent for path in files if path.name == _WITHDRAWN}
    return [path for path in files if path.name == _WITHDRAWN or path.parent not in withdrawn]


def _import_order(path: pathlib.Path) -> tuple[pathlib.Path, str, bool, bool, pathlib.Path]:
    """The key that sorts files as the command does: those of one video together, English ones first."""
    base, _, key = path.stem.rpartition(".")
    is_english = key.replace("_", "-").partition("-")[0].lower() == "en"
    return path.parent, base, not is_english, key.endswith("-orig"), path


def export_files(engine: Engine, folder: str | os.PathLike[str], format: str, replace: bool) -> int:
    """Writes all archived transcripts that can be read to files; returns their number."""
    export = _FolderExport(folder, format, replace)
    unreadable: list[VerbatimError] = []
    after: str | None = None
    while True:
        page, errors, after = engine.exports(after, PAGE).wait()
        export.write_page(page)
        unreadable += errors
        if after is None:
            break
    while format == "json":
        page, after = engine.withdrawals(after, PAGE).wait()
        export.write_withdrawals(page)
        if after is None:
            break
    return export.finish(unreadable, engine.unlisted_videos().wait())


async def aexport_files(engine: Engine, folder: str | os.PathLike[str], format: str, replace: bool) -> int:
    """As `export_files`. The files are written on a thread of the event loop's pool."""
    from asyncio import to_thread

    export = _FolderExport(folder, format, replace)
    unreadable: list[VerbatimError] = []
    after: str | None = None
    while True:
        page, errors, after = await engine.exports(after, PAGE)
        await to_thread(export.write_page, page)
        unreadable += errors
        if after is None:
            break
    while format == "json":
        page, after = await engine.withdrawals(after, PAGE)
        await to_thread(export.write_withdrawals, page)
        if after is None:
            break
    return export.finish(unreadable, await engine.unlisted_videos())


def import_files(engine: Engine, folder: str | os.PathLike[str], replace: bool) -> list[ImportOutcome]:
    """Imports the JSON files in a folder and its subfolders."""
    outcomes: list[ImportOutcome] = []
    for path in _json_files(folder):
        try:
            found = engine.import_all(path.read_bytes(), replace).wait()
        except (InvalidInput, ConflictError) as error:
            raise type(error)(f"{path}: {error}") from error
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
        except (InvalidInput, ConflictError) as error:
            raise type(error)(f"{path}: {error}") from error
        outcomes.extend(ImportOutcome(*each) for each in found)
    return outcomes
