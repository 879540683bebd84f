package dev.verbatim

import java.time.Duration
import java.time.Instant
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertIs
import kotlin.test.assertNotNull
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.BeforeAll
import org.junit.jupiter.api.TestInstance

/** The built-in suppliers, with recorded responses of the platform. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class YouTubeTest {
    private lateinit var replay: Replay

    @BeforeAll
    fun start() {
        replay = Replay()
    }

    @AfterAll
    fun stop() = replay.close()

    @Test
    fun `get fetches once and reports stages`() = runTest {
        Transcripts(replay.options()).useAndShutdown { transcripts ->
            val updates = transcripts.updates("vb-tracks-0").toList()
            val first = assertIs<TranscriptUpdate.Done>(updates.last()).transcript
            assertEquals("youtube-captions", first.source)
            assertTrue(!first.fromCache && first.segments.isNotEmpty())
            val stages = updates.dropLast(1).map { assertIs<TranscriptUpdate.Stage>(it).stage }
            assertTrue(stages.all { it.supplier == "youtube-captions" })
            assertTrue(transcripts.get("vb-tracks-0").fromCache)
            assertTrue(transcripts.get("vb-asronly0").isGenerated)
            assertEquals("fr", transcripts.get("vb-french-0").language)
            assertEquals(false, transcripts.refresh("vb-tracks-0").isChanged)
        }
    }

    @Test
    fun `unavailable video fails with reason`() = runTest {
        Transcripts(replay.options()).useAndShutdown { transcripts ->
            val private = assertFailure(FailureKind.NO_CAPTIONS) { transcripts.get("vb-private0") }
            assertEquals("private", private.reason)
            val limited = assertFailure(FailureKind.RATE_LIMITED) { transcripts.get("vb-botcheck") }
            assertEquals("rate_limited", limited.reason)
        }
    }

    @Test
    fun `playlist and channel are flows of their videos`() = runTest {
        Transcripts(replay.options()).useAndShutdown { transcripts ->
            val videos = transcripts.videos("PLvb-tides-0001").toList()
            assertEquals(listOf("vb-tracks-0", "vb-asronly0", "vb-private0", "vb-french-0"), videos.map { it.videoId })
            assertEquals("How a tide mill works" to "Tide Mill Trust", videos[0].title to videos[0].author)
            assertEquals(30.seconds to LiveStatus.WAS_LIVE, videos[0].duration to videos[1].live)
            assertTrue(videos[2].isUnavailable && assertNotNull(videos[0].published).run { earliest < latest })
            val all = transcripts.getAll(transcripts.videos("PLvb-tides-0001", limit = 3).map { it.url }).toList()
            assertEquals(videos.take(3).map { it.url }.toSet(), all.map { it.link }.toSet())
            assertEquals(listOf("private"), all.mapNotNull { it.failure?.reason })
            val yearAgo = Instant.now().minus(Duration.ofDays(365))
            val recent = transcripts.videos("https://www.youtube.com/@tidemills/streams", ChannelTab.VIDEOS, since = yearAgo).toList()
            assertEquals(listOf("vb-tracks-0", "vb-french-0"), recent.map { it.videoId })
            assertTrue(transcripts.videos("PLvb-empty-0001").toList().isEmpty())
            val found = transcripts.youtubeSearch("tide mills").toList()
            assertEquals(listOf("vb-tracks-0", "vb-asronly0", "vb-french-0"), found.map { it.videoId })
            assertTrue(transcripts.youtubeSearch("nothing").toList().isEmpty())
            assertFailure(FailureKind.INVALID_INPUT) { transcripts.youtubeSearch(" ").toList() }
            assertTrue(transcripts.videos("PLvb-tides-0001", limit = 0).toList().isEmpty())
        }
    }

    @Test
    fun `list that cannot be read fails with reason`() = runTest {
        Transcripts(replay.options()).useAndShutdown { transcripts ->
            // The first page of this list is valid: its second one is not requested.
            assertEquals(1, transcripts.videos("PLvb-cut-000001").take(1).toList().size)
            for ((list, kind, reason) in listOf(
                Triple("PLvb-private-01", FailureKind.NOT_FOUND, "private"),
                Triple("PLvb-removed-01", FailureKind.NOT_FOUND, "removed"),
                Triple("PLvb-layout-001", FailureKind.FETCH_FAILED, "unreadable"),
                Triple("PLvb-cut-000001", FailureKind.FETCH_FAILED, "unreadable"),
                Triple("UCvb-harbour-00000000000/about", FailureKind.INVALID_INPUT, null),
                Triple("https://youtu.be/vb-tracks-0", FailureKind.INVALID_INPUT, null),
                Triple("PLvb-throttled1", FailureKind.RATE_LIMITED, "throttled"),
            )) {
                assertEquals(reason, assertFailure(kind) { transcripts.videos(list).toList() }.reason)
            }
        }
        Transcripts(TranscriptsOptions(suppliers = emptyList())).useAndShutdown { transcripts ->
            assertFailure(FailureKind.NOT_CONFIGURED) { transcripts.videos("PLvb-tides-0001").toList() }
        }
    }
}
