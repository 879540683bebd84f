"""A document loader for LangChain: ``pip install verbatim-transcripts[langchain]``.

    from verbatim_transcripts.langchain import TranscriptLoader

    documents = TranscriptLoader(["https://youtu.be/dQw4w9WgXcQ"], seconds=120).load()
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

try:
    from langchain_core.document_loaders import BaseLoader
    from langchain_core.documents import Document
except ImportError as _missing:
    raise ImportError("langchain-core is not installed: pip install 'verbatim-transcripts[langchain]'") from _missing

from ._documents import check_size, parts
from ._functions import shared
from ._transcripts import Transcripts
from ._video_list import ListedVideo, VideoList

__all__ = ["TranscriptLoader"]


class TranscriptLoader(BaseLoader):
    """Loads transcripts as documents; the metadata has the title, the language, and the link to the moment.

    :param links: a link or listed video, several, or a :class:`verbatim_transcripts.VideoList`.
    :param lang: a BCP 47 tag, or several in order of preference; None: English, otherwise the spoken language.
    :param transcripts: the archive and the suppliers; None: those of :func:`verbatim_transcripts.get`.
    :param seconds: the size of a document; without a size each transcript is one document.
    :param tokens: the size of a document in estimated tokens of a language model.
    :param overlap: seconds or tokens that a document repeats from the one before; it needs a size.
    :param skip_missing: whether to leave out videos without a transcript, rather than to raise the error.
    """

    def __init__(
        self,
        links: str | ListedVideo | Iterable[str | ListedVideo],
        lang: str | Sequence[str] | None = None,
        *,
        transcripts: Transcripts | None = None,
        seconds: float | None = None,
        tokens: int | None = None,
        overlap: float | None = None,
        skip_missing: bool = False,
    ) -> None:
        self._links: Iterable[str | ListedVideo]
        # A listed video is a tuple.
        if isinstance(links, (str, ListedVideo)):
            self._links = [links]
        else:
            # A list of the platform is read again by each load; another iterable may end after one.
            self._links = links if isinstance(links, VideoList) else list(links)
        self._lang = lang
        self._transcripts = transcripts or shared()
        self._size = (seconds, tokens, overlap)
        check_size(self._size)
        self._skip_missing = skip_missing

    def lazy_load(self) -> Iterator[Document]:
        """Yields the documents, video by video in the order of completion."""
        for result in self._transcripts.get_many(self._links, self._lang):
            for text, metadata in parts(result, self._size, self._skip_missing):
                yield Document(page_content=text, metadata=metadata)

    async def alazy_load(self) -> AsyncIterator[Document]:
        """As :meth:`lazy_load`, for ``async for``."""
        async for result in self._transcripts.aget_many(self._links, self._lang):
            for text, metadata in parts(result, self._size, self._skip_missing):
                yield Document(page_content=text, metadata=metadata)
