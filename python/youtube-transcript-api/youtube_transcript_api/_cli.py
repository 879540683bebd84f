"""The command `youtube_transcript_api`."""

from __future__ import annotations

import argparse
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ._api import YouTubeTranscriptApi
from ._transcripts import FetchedTranscript, TranscriptList
from .formatters import FormatterLoader
from .proxies import GenericProxyConfig, ProxyConfig, WebshareProxyConfig


class YouTubeTranscriptCli:
    def __init__(self, args: list[str]) -> None:
        self._args = args

    def run(self) -> str:
        """Returns the output of the command: failures first, then transcripts."""
        parsed = self._parse_args()
        if parsed.exclude_manually_created and parsed.exclude_generated:
            return ""
        api = YouTubeTranscriptApi(proxy_config=_proxies(parsed))
        transcripts: list[Any] = []
        failures: list[Exception] = []
        for video_id in parsed.video_ids:
            try:
                listed = api.list(video_id)
                transcripts.append(listed if parsed.list_transcripts else self._fetch(parsed, listed))
            except Exception as error:  # a failed video does not stop the others
                failures.append(error)
        parts = [str(failure) for failure in failures]
        if parsed.list_transcripts:
            parts.extend(str(listed) for listed in transcripts)
        elif transcripts:
            parts.append(FormatterLoader().load(parsed.format).format_transcripts(transcripts))
        return "\n\n".join(parts)

    def _fetch(self, parsed: argparse.Namespace, listed: TranscriptList) -> FetchedTranscript:
        if parsed.exclude_manually_created:
            transcript = listed.find_generated_transcript(parsed.languages)
        elif parsed.exclude_generated:
            transcript = listed.find_manually_created_transcript(parsed.languages)
        else:
            transcript = listed.find_transcript(parsed.languages)
        if parsed.translate:
            transcript = transcript.translate(parsed.translate)
        return transcript.fetch()

    def _get_version(self) -> str:
        try:
            return version("verbatim-youtube-transcript-api")
        except PackageNotFoundError:
            return "unknown"

    def _parse_args(self) -> argparse.Namespace:
        parser = argparse.ArgumentParser(
            prog="youtube_transcript_api", description="Print the transcripts of YouTube videos."
        )
        add = parser.add_argument
        add("--version", action="version", version=f"%(prog)s, version {self._get_version()}")
        add("--list-transcripts", action="store_const", const=True, default=False, help="list available transcripts")
        add("video_ids", nargs="+", type=str, help=r"video ids; write an id that begins with a dash as \-id")
        add("--languages", nargs="*", default=["en"], type=str, help="languages in order of preference")
        add(
            "--exclude-generated",
            action="store_const",
            const=True,
            default=False,
            help="only manually created transcripts",
        )
        add(
            "--exclude-manually-created",
            action="store_const",
            const=True,
            default=False,
            help="only generated transcripts",
        )
        add("--format", type=str, default="pretty", choices=tuple(FormatterLoader.TYPES), help="output format")
        add("--translate", default="", metavar="LANGUAGE", help="translate with YouTube")
        add("--webshare-proxy-username", default=None, type=str, metavar="USERNAME")
        add("--webshare-proxy-password", default=None, type=str, metavar="PASSWORD")
        add("--http-proxy", default="", metavar="URL")
        add("--https-proxy", default="", metavar="URL")
        parsed = parser.parse_args(self._args)
        parsed.video_ids = [video_id.replace("\\", "") for video_id in parsed.video_ids]
        return parsed


def _proxies(parsed: argparse.Namespace) -> ProxyConfig | None:
    if parsed.webshare_proxy_username is not None or parsed.webshare_proxy_password is not None:
        return WebshareProxyConfig(
            proxy_username=parsed.webshare_proxy_username, proxy_password=parsed.webshare_proxy_password
        )
    if parsed.http_proxy or parsed.https_proxy:
        return GenericProxyConfig(http_url=parsed.http_proxy, https_url=parsed.https_proxy)
    return None
