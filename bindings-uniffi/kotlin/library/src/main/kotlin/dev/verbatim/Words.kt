package dev.verbatim

import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds

/** When it starts, from the video's beginning. */
public val Segment.start: Duration
    get() = startMs.milliseconds

/** How long it lasts. */
public val Segment.duration: Duration
    get() = durationMs.milliseconds

/** When it ends, from the video's beginning. */
public val Segment.end: Duration
    get() = (startMs + durationMs).milliseconds

/** The video's length, where it is known. */
public val Transcript.duration: Duration?
    get() = durationMs?.milliseconds

/** Whether a machine made the words. */
public val Transcript.isGenerated: Boolean
    get() = kind != TrackKind.HUMAN

/** The words as plain prose. */
public fun Transcript.text(): String = render(this, Format.TEXT)

/** The words as Markdown with times. */
public fun Transcript.markdown(): String = render(this, Format.MARKDOWN)

/** The words as SRT subtitles. */
public fun Transcript.srt(): String = render(this, Format.SRT)

/** The words as WebVTT subtitles. */
public fun Transcript.webVtt(): String = render(this, Format.WEB_VTT)
