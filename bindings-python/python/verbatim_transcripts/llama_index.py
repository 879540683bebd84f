"""A reader for LlamaIndex: ``pip install verbatim-transcripts[llama-index]``.

    from verbatim_transcripts.llama_index import TranscriptReader

    documents = TranscriptReader().load_data(["https://youtu.be/dQw4w9WgXcQ"], seconds=120)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

try:
    from llama_index.core.readers.base import BaseReader
    from llama_index.core.schema import Document
except ImportError as _missing:
    raise ImportError("llama-index-core is not installed: pip install 'verbatim-transcripts[llama-index]'") from _missing

from ._documents import check_size, parts
from ._functions import shared
from ._transcripts import Transcripts
from ._video_list import ListedVideo

__all__ = ["TranscriptReader"]


class TranscriptReader(BaseReader):
    """Reads transcripts as documents; the metadata has the title, the language, and the link to the moment.

    :param transcripts: the archive and the suppliers; None: those of :func:`verbatim_transcripts.get`.
    """

    def __init__(self, transcripts: Transcripts | None = None) -> None:
        self._transcripts = transcripts or shared()

    def lazy_load_data(
        self,
        links: str | ListedVideo | Iterable[str | ListedVideo],
        lang: str | Sequence[str] | None = None,
        *,
        seconds: float | None = None,
        tokens: int | None = None,
        overlap: float | None = None,
        skip_missing: bool = False,
    ) -> Iterable[Document]:
        """Yields the documents, video by video in the order of completion.

        :param links: a link or listed video, several, or a :class:`verbatim_transcripts.VideoList`.
        :param lang: a BCP 47 tag, or several in order of preference; None: English, otherwise the spoken language.
        :param seconds: the size of a document; without a size each transcript is one document.
        :param tokens: the size of a document in estimated tokens of a language model.
        :param overlap: seconds or tokens that a document repeats from the one before; it needs a size.
        :param skip_missing: whether to leave out videos without a transcript, rather than to raise the error.
        """
        size = (seconds, tokens, overlap)
        check_size(size)
        # A listed video is a tuple.
        several: Iterable[str | ListedVideo] = [links] if isinstance(links, (str, ListedVideo)) else links
        for result in self._transcripts.get_many(several, lang):
            for text, metadata in parts(result, size, skip_missing):
                yield Document(text=text, metadata=metadata)
