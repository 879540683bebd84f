package dev.verbatim

import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertIs
import kotlin.test.assertTrue
import kotlinx.coroutines.flow.toList
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.BeforeAll
import org.junit.jupiter.api.TestInstance

/** The built-in suppliers, over recorded answers of the platform: the code of production, to the address. */
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
    fun `a transcript is fetched, once, and told of`() = check {
        Transcripts(replay.options()).useThenShutdown { transcripts ->
            val told = transcripts.progress("vb-tracks-0").toList()
            val first = assertIs<Progress.Done>(told.last()).transcript
            assertEquals("youtube-captions", first.source)
            assertTrue(!first.fromCache && first.segments.isNotEmpty())
            assertTrue(told.dropLast(1).all { assertIs<Progress.Underway>(it).stage.supplier == "youtube-captions" })
            assertTrue(transcripts.get("vb-tracks-0").fromCache)
            assertTrue(transcripts.get("vb-asronly0").isGenerated)
            assertEquals("fr", transcripts.get("vb-french-0").language)
            assertEquals(false, transcripts.refresh("vb-tracks-0").isChanged)
        }
    }

    @Test
    fun `why there is none`() = check {
        Transcripts(replay.options()).useThenShutdown { transcripts ->
            assertEquals("no_captions", failing(FailureKind.NO_CAPTIONS) { transcripts.get("vb-private0") }.reason)
            assertEquals("rate_limited", failing(FailureKind.RATE_LIMITED) { transcripts.get("vb-botcheck") }.reason)
        }
    }
}
