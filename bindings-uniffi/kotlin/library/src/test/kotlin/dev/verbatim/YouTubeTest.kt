package dev.verbatim

import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertIs
import kotlin.test.assertTrue
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
            assertEquals("no_captions", private.reason)
            val limited = assertFailure(FailureKind.RATE_LIMITED) { transcripts.get("vb-botcheck") }
            assertEquals("rate_limited", limited.reason)
        }
    }
}
