"""Many links at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ._native import Batch, Pending, Transcript


class Result(NamedTuple):
    """What came of one link out of many: a transcript or an error."""

    #: The link, as it was given.
    link: str
    #: The transcript; None where there is none.
    transcript: Transcript | None
    #: Why there is none; None where there is one.
    error: Exception | None

    def get(self) -> Transcript:
        """The transcript; raises the error where there is none."""
        if self.error is not None:
            raise self.error
        assert self.transcript is not None
        return self.transcript


class Window:
    """The work that is under way for a run of links: at most so much at once, taken from the links as it ends."""

    def __init__(
        self,
        links: Iterable[str],
        begin: Callable[[str], Pending],
        at_once: int,
        progress: Callable[[int, Result], Any] | None,
    ) -> None:
        if isinstance(links, (str, bytes)):
            raise TypeError("links must be several: for one there is get")
        if at_once < 1:
            raise ValueError("at_once must be at least 1")
        self._links = enumerate(links)
        self._begin = begin
        self._at_once = at_once
        self._progress = progress
        self._batch = Batch()
        self._under_way: dict[int, str] = {}
        self._ready: list[Result] = []
        self._done = 0

    def _fill(self) -> None:
        while len(self._under_way) < self._at_once:
            number, link = next(self._links, (None, ""))
            if number is None:
                return
            try:
                self._batch.start(number, self._begin(link))
            except (TypeError, ValueError) as error:
                # What is no text at all: an answer like any other, in its place.
                self._ready.append(Result(link, None, error))
                return
            self._under_way[number] = link

    def _ended(self, ended: tuple[int, Any, Exception | None]) -> Result:
        number, transcript, error = ended
        if error is not None and not isinstance(error, Exception):
            raise error
        return Result(self._under_way.pop(number), transcript, error)

    def _told(self, result: Result) -> Result:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, result)
        return result

    def results(self) -> Iterator[Result]:
        while True:
            self._fill()
            if self._ready:
                yield self._told(self._ready.pop())
            elif self._under_way:
                yield self._told(self._ended(self._batch.next().wait()))
            else:
                return

    async def aresults(self) -> AsyncIterator[Result]:
        while True:
            self._fill()
            if self._ready:
                yield self._told(self._ready.pop())
            elif self._under_way:
                yield self._told(self._ended(await self._batch.next()))
            else:
                return
