package dev.verbatim

import java.time.Instant
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.toJavaDuration

/** Start, from the beginning of the video. */
public val Segment.start: Duration
    get() = startMs.milliseconds

/** Duration of the segment. */
public val Segment.duration: Duration
    get() = durationMs.milliseconds

/** End, from the beginning of the video. */
public val Segment.end: Duration
    get() = (startMs + durationMs).milliseconds

/** Start, from the beginning of the video. */
public val Word.start: Duration
    get() = startMs.milliseconds

/** Duration of the word. */
public val Word.duration: Duration
    get() = durationMs.milliseconds

/** End, from the beginning of the video. */
public val Word.end: Duration
    get() = (startMs + durationMs).milliseconds

/** Start, from the beginning of the video. */
public val Chapter.start: Duration
    get() = startMs.milliseconds

/** Chapters of the video, ordered by start. */
public val Transcript.chapters: List<Chapter>
    get() = metadata.chapters

/** When the video was published, if known. */
public val VideoMetadata.published: Instant?
    get() = publishedAt?.let(Instant::ofEpochMilli)

/** Length of the video, if known. */
public val ListedVideo.duration: Duration?
    get() = durationMs?.milliseconds

/** Name of the track, or the English name of its language. */
public val TrackInfo.displayName: String
    get() = name ?: languageName(language)

/** Length of the video, if known. */
public val Transcript.duration: Duration?
    get() = durationMs?.milliseconds

/** Whether the transcript was generated or translated by a machine. */
public val Transcript.isGenerated: Boolean
    get() = kind != TrackKind.HUMAN

/** Splits the transcript into chunks that last about [size]; [overlap] is repeated at the beginning of the next one. */
public fun Transcript.chunks(size: Duration, overlap: Duration = Duration.ZERO): List<Chunk> =
    chunksByTime(this, size.toJavaDuration(), overlap.toJavaDuration())

/** Splits the transcript into pages of at most [maxChars] characters: every segment is in one page. */
public fun Transcript.pages(maxChars: UInt = 20_000u): List<Chunk> = pagesByChars(this, maxChars)

/** Start, from the beginning of the video. */
public val Chunk.start: Duration
    get() = startMs.milliseconds

/** End, from the beginning of the video. */
public val Chunk.end: Duration
    get() = endMs.milliseconds

/** The transcript as plain text. */
public fun Transcript.text(): String = render(this, TranscriptFormat.TEXT)

/** The transcript as Markdown with timestamps. */
public fun Transcript.markdown(): String = render(this, TranscriptFormat.MARKDOWN)

/** The transcript as SRT subtitles. */
public fun Transcript.srt(): String = render(this, TranscriptFormat.SRT)

/** The transcript as WebVTT subtitles. */
public fun Transcript.webVtt(): String = render(this, TranscriptFormat.WEB_VTT)
