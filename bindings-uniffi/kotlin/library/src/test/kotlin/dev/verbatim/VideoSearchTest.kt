package dev.verbatim

import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList

/** Search in the whole archive. */
class VideoSearchTest {
    private fun srt(text: String) = "1\n00:00:01,500 --> 00:00:04,000\n$text\n"

    /** An archive in a folder, with talks about lighthouses. */
    private suspend fun archive(): Transcripts {
        val transcripts = openTranscripts(temporaryFolder().toFile(), TranscriptsOptions(suppliers = emptyList()))
        for (number in 10 until 35) {
            transcripts.importCaptions("https://youtu.be/video0000$number", srt("Lighthouses, number $number"), "en")
        }
        transcripts.importCaptions("https://youtu.be/dddddddddde", srt("Leuchttürme 🌊 am Meer"), "de")
        return transcripts
    }

    @Test
    fun `search is a flow of all pages`() = runTest {
        archive().useAndShutdown { transcripts ->
            val hits = transcripts.searchVideos("lighthouse", pageSize = 10).toList()
            assertEquals(25, hits.map { it.transcript.videoId }.toSet().size)
            assertEquals(25, hits.size)
            val first = transcripts.searchVideosPage("lighthouse", limit = 10u)
            assertEquals(Triple(25L, true, null), Triple(first.total, first.isTotalExact, first.suggestion))
            assertEquals(hits.take(10), first.hits)
            assertEquals(3, transcripts.searchVideos("lighthouse", pageSize = 2).take(3).toList().size)
            val one = transcripts.searchVideos("\"number 17\"").toList().single()
            assertEquals("video000017", one.transcript.videoId)
            assertTrue(transcripts.searchVideos("lighthouse", platform = Platform.X).toList().isEmpty())
            assertEquals(25, transcripts.searchVideos("lighthouse", sort = SearchSort.DATE).toList().size)
        }
    }

    @Test
    fun `moment marks matches in its text`() = runTest {
        archive().useAndShutdown { transcripts ->
            val moment = transcripts.searchVideos("meer", language = "de").toList().single().moments.single()
            assertEquals(listOf("Meer"), moment.matchRanges.map { moment.text.substring(it) })
            assertEquals(1_500.milliseconds to 4_000.milliseconds, moment.start to moment.end)
            assertTrue(moment.url.endsWith("t=1s"), moment.url)
        }
    }

    @Test
    fun `search follows changes and survives pause`() = runTest {
        archive().useAndShutdown { transcripts ->
            val walrus = "https://youtu.be/wwwwwwwwwww"
            assertEquals(0, transcripts.searchVideosPage("walrus").total)
            transcripts.importCaptions(walrus, srt("A walrus."), "en")
            transcripts.pause()
            assertEquals(1, transcripts.searchVideosPage("walrus").total)
            transcripts.delete(walrus)
            assertTrue(transcripts.searchVideos("walrus").toList().isEmpty())
            assertEquals("lighthouses", transcripts.searchVideosPage("lighthuoses").suggestion)
        }
    }

    @Test
    fun `search rejects invalid options`() = runTest {
        archive().useAndShutdown { transcripts ->
            assertTrue(transcripts.searchVideos("***").toList().isEmpty())
            assertFailure(FailureKind.INVALID_INPUT) { transcripts.searchVideos("a", language = "no tag").toList() }
            for (size in listOf(-1, 0, 101)) {
                assertFailure(FailureKind.INVALID_INPUT) { transcripts.searchVideos("a", pageSize = size).toList() }
            }
            assertFailure(FailureKind.INVALID_INPUT) { transcripts.searchVideosPage("a", cursor = "nothing") }
        }
    }
}
