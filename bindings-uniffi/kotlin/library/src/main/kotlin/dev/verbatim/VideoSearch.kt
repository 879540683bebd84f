package dev.verbatim

import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow

/**
 * Finds the videos of the archive whose transcripts match [query], with their best moments.
 *
 * All words must occur, in any order and form. `"exact phrase"`, `-not`, `OR`, `prefix*`, `lang:`, `platform:`,
 * `channel:`, `before:` and `after:` narrow the search; anything malformed is searched as words. Each page of [pageSize]
 * hits, from 1 to 100, is read when the collector needs it. The first search of an archive builds its index, which later
 * ones update.
 *
 * The flow fails as [Transcripts.searchVideosPage] does, which also returns the number of all matching videos.
 */
public fun Transcripts.searchVideos(
    query: String,
    language: String? = null,
    platform: Platform? = null,
    sort: SearchSort = SearchSort.RELEVANCE,
    pageSize: Int = 20,
): Flow<VideoHit> = flow {
    // A negative size would be a large one.
    val limit = pageSize.coerceAtLeast(0).toUInt()
    var cursor: String? = null
    do {
        val page = searchVideosPage(query, language, platform, sort, limit, cursor)
        for (hit in page.hits) emit(hit)
        cursor = page.next
    } while (cursor != null)
}

/** Start of the moment. */
public val VideoMoment.start: Duration get() = startMs.milliseconds

/** End of the moment. */
public val VideoMoment.end: Duration get() = endMs.milliseconds

/** The matches, as ranges of indices of [VideoMoment.text]. */
public val VideoMoment.matchRanges: List<IntRange>
    get() = matches.map { match ->
        val start = text.offsetByCodePoints(0, match.start.toInt())
        start until text.offsetByCodePoints(start, (match.end - match.start).toInt())
    }
