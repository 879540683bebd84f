"""The command: ``python -m verbatim_transcripts LINK``, or one of its sub-commands."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Generator, Sequence
from typing import NoReturn

from . import _commands
from ._errors import InvalidInput, TranscriptUnavailable, VerbatimError
from ._native import Transcript, __version__
from ._transcripts import Transcripts

#: Exit statuses, as of the command `verbatim`.
_FAILED, _WRONG_ARGUMENT, _NO_TRANSCRIPT, _INTERRUPTED = 1, 2, 3, 130


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError("must be 0 to 86400")
    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m verbatim_transcripts",
        usage="%(prog)s [OPTIONS] LINK...\n       %(prog)s search | languages | export | import ...",
        description="Get the transcripts of videos.",
        epilog=_commands.HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("links", nargs="+", metavar="LINK", help="link to a video, or a YouTube id")
    parser.add_argument(
        "--lang", action="append", help="language as a BCP 47 tag; repeat it in order of preference"
    )
    parser.add_argument("--translated", action="store_true", help="accept machine translations")
    parser.add_argument("--no-fetch", dest="fetch", action="store_false", help="read the archive only")
    parser.add_argument("--list", dest="lists", action="store_true", help="list the languages instead")
    parser.add_argument(
        "--format", choices=["text", "md", "srt", "vtt", "json"], default="text", help="output format (text)"
    )
    parser.add_argument(
        "--max-wait",
        type=_seconds,
        metavar="SECONDS",
        help="longest wait for a platform that throttles or blocks (300 with several links, otherwise 0)",
    )
    _commands.add_archive_option(parser)
    parser.add_argument("--version", action="version", version=__version__)
    return parser


def _write(transcript: Transcript, format: str) -> str:
    if format == "text":
        return transcript.text
    if format == "md":
        return transcript.to_markdown()
    if format == "srt":
        return transcript.to_srt()
    return transcript.to_vtt() if format == "vtt" else transcript.to_json() + "\n"


def _texts(
    transcripts: Transcripts, args: argparse.Namespace
) -> Generator[tuple[str, str | VerbatimError], None, None]:
    """Yields each link with its output, or with its failure."""
    if args.lists:
        for link in args.links:
            try:
                yield link, _commands.tracks(transcripts, link, args.fetch)
            except VerbatimError as error:
                yield link, error
        return
    max_wait = args.max_wait
    if max_wait is None and len(args.links) == 1:
        max_wait = 0
    results = transcripts.get_many(
        args.links, args.lang, translated=args.translated, fetch=args.fetch, max_wait=max_wait, in_order=True
    )
    for result in results:
        if isinstance(result.error, VerbatimError):
            yield result.link, result.error
        else:
            yield result.link, _write(result.get(), args.format)


def _status(error: VerbatimError) -> int:
    if isinstance(error, TranscriptUnavailable):
        return _NO_TRANSCRIPT
    return _WRONG_ARGUMENT if isinstance(error, InvalidInput) else _FAILED


def _run_command(arguments: Sequence[str]) -> int:
    """Runs a sub-command; returns its exit status."""
    try:
        for line in _commands.run(arguments):
            print(line, flush=True)
    except (VerbatimError, ValueError) as error:
        print(error, file=sys.stderr)
        return _status(error) if isinstance(error, VerbatimError) else _WRONG_ARGUMENT
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    # Subtitles are UTF-8, whatever the terminal is.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] in _commands.NAMES:
        return _run_command(arguments)
    args = _parser().parse_args(arguments)
    try:
        transcripts = _commands.open_transcripts(args)
    except (InvalidInput, ValueError) as error:
        print(error, file=sys.stderr)
        return _WRONG_ARGUMENT
    status = 0
    try:
        for link, done in _texts(transcripts, args):
            if isinstance(done, str):
                sys.stdout.write(done)
                sys.stdout.flush()
            else:
                # The message alone: the text of a missing transcript names the video, as the link does.
                print(f"{link}: {done.args[0]}", file=sys.stderr)
                status = max(status, _status(done))
    except InvalidInput as error:
        # An argument that all links have in common, such as a malformed language.
        print(error, file=sys.stderr)
        status = _WRONG_ARGUMENT
    transcripts.close()
    return status


def _run() -> NoReturn:
    try:
        sys.exit(main())
    except OSError as error:
        # The reader of the output has left, or the disk is full: the interpreter must not write to it again.
        if not isinstance(error, BrokenPipeError):
            print(error, file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_FAILED)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    _run()
