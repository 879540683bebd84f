"""The sub-commands `search`, `languages`, `export` and `import` of ``python -m verbatim_transcripts``."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from ._errors import InvalidInput
from ._export_folder import FORMATS
from ._functions import shared
from ._search import VideoHit
from ._transcripts import Transcripts

_PROGRAM = "python -m verbatim_transcripts"
_ARCHIVE = "file or database of the archive (VERBATIM_STORAGE__ARCHIVE_URL)"
#: Zero-width non-joiner and joiner, of Persian, of Indic scripts and of emoji.
_JOINERS = "\u200c\u200d"
#: The end of the help.
HELP = f"""\
commands, each with its own --help:
  search WORDS     search the archive
  languages LINK   list the languages of a video
  export FOLDER    write the archive to files
  import FOLDER    read such files into the archive

examples:
  {_PROGRAM} dQw4w9WgXcQ --lang de --lang en --format srt
  {_PROGRAM} search tide tables --archive transcripts.db
  {_PROGRAM} export backup --archive transcripts.db

exit status: 0 success; 1 a failure; 2 a wrong argument; 3 no transcript"""


def add_archive_option(parser: argparse.ArgumentParser) -> None:
    """Adds the option that names the archive."""
    parser.add_argument("--archive", metavar="PLACE", help=_ARCHIVE)


def open_transcripts(args: argparse.Namespace) -> Transcripts:
    """Returns the transcripts in the archive of the option, otherwise of the environment."""
    return shared() if args.archive is None else Transcripts(args.archive)


def tracks(transcripts: Transcripts, link: str, fetch: bool) -> str:
    """Returns a line for each track of a video: language, kind and name."""
    lines = [
        "\t".join([track.language, track.kind, _one_line(track.name or "")]).rstrip()
        for track in transcripts.languages(link, fetch=fetch)
    ]
    return "".join(line + "\n" for line in lines)


def _one_line(text: str) -> str:
    # A title or caption may have control characters, which a terminal would execute. Joiners are within words.
    return " ".join("".join(char if char.isprintable() or char in _JOINERS else " " for char in text).split())


def _hit(hit: VideoHit) -> Iterator[str]:
    transcript = hit.transcript
    names = (_one_line(name or "") for name in (transcript.title, transcript.author))
    yield " - ".join(filter(None, names)) or f"{transcript.platform} {transcript.video_id}"
    if not hit.moments:
        yield transcript.url
    for moment in hit.moments:
        yield f"{moment.url}\t{_one_line(moment.text)}"
    yield ""


def _search(transcripts: Transcripts, args: argparse.Namespace) -> Iterator[str]:
    found = transcripts.search_videos(
        " ".join(args.words), args.lang, platform=args.platform, sort=args.sort, page_size=args.limit
    )
    for hit in islice(found, args.limit):
        yield from _hit(hit)
    if found.suggestion is not None:
        yield f"Nothing was found. Did you mean: {_one_line(found.suggestion)}"
    elif found.total == 0:
        yield "Nothing was found."


def _languages(transcripts: Transcripts, args: argparse.Namespace) -> Iterator[str]:
    yield from tracks(transcripts, args.link, args.fetch).splitlines()


def _export(transcripts: Transcripts, args: argparse.Namespace) -> Iterator[str]:
    count = transcripts.export(args.folder, args.format, replace=args.replace)
    yield f"{count} transcripts are in {args.folder}"


def _import(transcripts: Transcripts, args: argparse.Namespace) -> Iterator[str]:
    counts = Counter(outcome.effect for outcome in transcripts.import_folder(args.folder, replace=args.replace))
    yield ", ".join(f"{count} {effect}" for effect, count in counts.items()) or "no JSON files"


def _limit(text: str) -> int:
    if not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError("must be 1 to 100")
    return int(text)


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"{_PROGRAM} {name}")
    if name == "search":
        parser.description = (
            'Search the archive. All words must occur, in any order and form. "exact phrase", OR, prefix*, channel:, '
            "before: and after: narrow the search; so does -not after the argument --: search --lang en -- tide -moon"
        )
        parser.add_argument("words", nargs="+", metavar="WORDS", help="words to search for")
        parser.add_argument("--lang", help="only transcripts in this language, a BCP 47 tag")
        parser.add_argument("--platform", help="only videos of youtube, tiktok, instagram or x")
        parser.add_argument("--sort", choices=["relevance", "date"], default="relevance", help="best or newest first")
        parser.add_argument("--limit", type=_limit, default=20, metavar="N", help="most videos, 1 to 100 (20)")
    elif name == "languages":
        parser.description = "List the languages in which a video has captions: language, kind and name."
        parser.add_argument("link", metavar="LINK", help="link to a video, or a YouTube id")
        parser.add_argument("--no-fetch", dest="fetch", action="store_false", help="read the archive only")
    elif name == "export":
        parser.description = (
            "Write all archived transcripts to files, PLATFORM/VIDEO/LANGUAGE.FORMAT. Files with other content are "
            "kept, unless --replace is given. `import` reads the JSON files."
        )
        parser.add_argument("folder", metavar="FOLDER", help="folder of the files; it is created if necessary")
        parser.add_argument("--format", choices=FORMATS, default="json", help="format of the files (json)")
        parser.add_argument("--replace", action="store_true", help="overwrite files with other content")
    else:
        parser.description = "Import the JSON files in a folder and its subfolders, as `export` writes them."
        parser.add_argument("folder", metavar="FOLDER", help="folder of the files")
        parser.add_argument("--replace", action="store_true", help="replace archived transcripts")
    add_archive_option(parser)
    return parser


_COMMANDS = {"search": _search, "languages": _languages, "export": _export, "import": _import}
#: The names of the commands.
NAMES = frozenset(_COMMANDS)


def run(arguments: Sequence[str]) -> Iterator[str]:
    """Runs the command that the first argument names; yields its lines.

    :raises ValueError: an argument is wrong.
    :raises VerbatimError: the command failed.
    """
    name, *rest = arguments
    args = _parser(name).parse_args(rest)
    if name != "languages" and args.archive is None and not os.environ.get("VERBATIM_STORAGE__ARCHIVE_URL"):
        raise InvalidInput("name the archive: --archive PLACE, or VERBATIM_STORAGE__ARCHIVE_URL")
    with open_transcripts(args) as transcripts:
        yield from _COMMANDS[name](transcripts, args)
