package dev.verbatim

import java.time.Instant
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow

/**
 * Returns the videos of a playlist or channel of YouTube, or of a profile of TikTok, in the order of the list.
 *
 * [list] is the link of a playlist, or of a channel, also with a tab; an id of one; or a handle such as `@name`. [tab]
 * replaces the tab of a channel. Each page of up to 100 videos is read when the collector needs it, about a second after
 * the page before. [limit] is the largest number of videos. Videos that were surely published before [since] are left
 * out; a channel's list ends at the first page that ends with one.
 *
 * The flow fails as [Transcripts.videoListPage] does. [getAll] takes its URLs:
 * `transcripts.getAll(transcripts.videos(list).map { it.url })`.
 */
public fun Transcripts.videos(
    list: String,
    tab: ChannelTab? = null,
    limit: Int = Int.MAX_VALUE,
    since: Instant? = null,
): Flow<ListedVideo> = flow {
    var remaining = limit
    var position: String? = null
    while (remaining > 0) {
        val page = videoListPage(list, tab, position, since?.toEpochMilli())
        for (video in page.videos.take(remaining)) emit(video)
        remaining -= page.videos.size
        position = page.next ?: break
    }
}

/**
 * Returns the videos that YouTube finds for [words], the best matches first, as [videos] does; at most 1,000.
 *
 * It searches YouTube; [searchVideos] searches the archive.
 *
 * @throws VerbatimException there are no words, or more than 200 characters
 */
public fun Transcripts.youtubeSearch(
    words: String,
    limit: Int = Int.MAX_VALUE,
    since: Instant? = null,
): Flow<ListedVideo> = videos(youtubeSearchAddress(words), limit = limit, since = since)
