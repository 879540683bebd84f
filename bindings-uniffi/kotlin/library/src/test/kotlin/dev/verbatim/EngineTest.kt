package dev.verbatim

import java.io.File
import java.time.Duration
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.flow.toList

class EngineTest {
    @Test
    fun `what was imported is found, in every form`() = check {
        shelf().useThenShutdown { transcripts ->
            val found = transcripts.get(LINK)
            assertEquals(listOf("It is so quiet here.", "The café is closed."), found.segments.map { it.text })
            assertEquals(1.5.seconds, found.segments[0].start)
            assertEquals(1.5.seconds, found.segments[0].duration)
            assertEquals(64.seconds, found.segments[1].end)
            assertEquals(Platform.VIDEO_SITE, found.platform)
            assertEquals("dQw4w9WgXcQ" to "en", found.videoId to found.language)
            assertTrue(found.fromCache && !found.isGenerated)
            assertEquals(1u, found.revision)
            assertEquals("It is so quiet here. The café is closed.", found.text().replace(Regex("\\s+"), " ").trim())
            assertContains(found.markdown(), "café")
            assertContains(found.srt(), "00:01:01,000 --> 00:01:04,000")
            assertContains(found.webVtt(), "WEBVTT")
            assertEquals(found.segments, parseCaptions(found.srt().toByteArray()))
            assertEquals("0.1.0", version())
        }
    }

    @Test
    fun `import, search, forget`() = check {
        shelf().useThenShutdown { transcripts ->
            val german = "WEBVTT\n\n00:01.000 --> 00:02.000\nAnders.\n"
            val done = transcripts.importCaptions(LINK, german, "de")
            assertEquals(Imported("de", 1, ImportEffect.ADDED, 0, 0), done)
            val loud = ImportRequest(LINK, SRT.replace("quiet", "loud").toByteArray(), language = "en", title = "A day")
            assertEquals(ImportEffect.KEPT, transcripts.importCaptions(loud).effect)
            assertEquals(ImportEffect.REPLACED, transcripts.importCaptions(loud.copy(replace = true)).effect)
            assertEquals(2u, transcripts.get(LINK).revision)
            assertEquals("A day", transcripts.get(LINK).title)
            assertEquals("de", transcripts.get(LINK, "de").language)
            val hit = transcripts.search("CAFE closed").single()
            assertEquals("The café is closed." to 61_000L, hit.text to hit.startMs)
            assertContains(hit.url, "t=61s")
            assertTrue(transcripts.search("closed", "de").isEmpty() && transcripts.search("closed", limit = 0u).isEmpty())
            assertEquals(1L, transcripts.size().videos)
            transcripts.forget(LINK)
            assertEquals(0L, transcripts.size().videos)
            failing(FailureKind.INVALID_INPUT) { transcripts.search(" … ") }
            failing(FailureKind.INVALID_INPUT) { transcripts.importCaptions(LINK, "no captions") }
        }
    }

    @Test
    fun `why there is none is a kind and a sentence`() = check {
        Transcripts(TranscriptsOptions(suppliers = emptyList())).useThenShutdown { transcripts ->
            val none = failing(FailureKind.NOT_CONFIGURED) { transcripts.get(LINK) }
            assertEquals("config_error", none.reason)
            assertEquals(Platform.VIDEO_SITE to "dQw4w9WgXcQ", none.platform to none.videoId)
            assertContains(assertNotNull(none.watchUrl), "/watch/video_site/dQw4w9WgXcQ")
            assertTrue(none.sentence.endsWith("."))
            failing(FailureKind.NOT_CONFIGURED) { transcripts.refresh(LINK) }
            failing(FailureKind.INVALID_INPUT) { transcripts.get("no link") }
            failing(FailureKind.INVALID_INPUT) { transcripts.get(LINK, "no language") }
            failing(FailureKind.INVALID_INPUT) { transcripts.forget("") }
            failing(FailureKind.INVALID_INPUT) { transcripts.getMany(listOf(LINK), atOnce = 0u) }
        }
    }

    @Test
    fun `options that are wrong are named`() = check {
        val zero = TranscriptsOptions(wait = Duration.ZERO)
        for ((options, name) in listOf(
            zero to "wait",
            TranscriptsOptions(storeTimeout = Duration.ofDays(2)) to "store_timeout",
            TranscriptsOptions(storage = Storage.Folder("")) to "storage",
            TranscriptsOptions(suppliers = listOf(builtIn("nobody"))) to "nobody",
            TranscriptsOptions(suppliers = listOf(supplier("") { emptyList() })) to "name",
            TranscriptsOptions(proxies = listOf("not a proxy")) to "proxy",
        )) {
            val failure = failing(FailureKind.INVALID_INPUT) { Transcripts(options) }
            assertContains(failure.sentence, name)
        }
    }

    @Test
    fun `a folder of the app's lasts, rests and opens again`() = check {
        val place = File(folder().toFile(), "deep/er")
        transcriptsIn(place, TranscriptsOptions(suppliers = emptyList())).useThenShutdown { transcripts ->
            transcripts.importCaptions(LINK, SRT, "en")
            transcripts.pause()
            assertEquals(2, transcripts.get(LINK).segments.size)
            transcripts.pause()
            transcripts.pause()
        }
        assertTrue(File(place, "archive.db").length() > 0 && File(place, "verbatim.db").length() > 0)
        val file = File(place, "archive.db").path
        Transcripts(TranscriptsOptions(storage = Storage.ArchiveFile(file), suppliers = emptyList())).use {
            assertEquals(2, it.get(LINK).segments.size)
        }
        val damaged = File(place, "damaged.db").apply { writeBytes("SQLite format 3\u0000".toByteArray() + ByteArray(5_000) { -1 }) }
        Transcripts(TranscriptsOptions(storage = Storage.ArchiveFile(damaged.path))).use {
            failing(FailureKind.CORRUPT) { it.get(LINK) }
        }
        Transcripts(TranscriptsOptions(storage = Storage.Folder("/dev/null/x"))).use {
            failing(FailureKind.UNAVAILABLE) { it.get(LINK) }
        }
    }

    @Test
    fun `after its end a call is an error, and nothing else`() = check {
        val transcripts = shelf()
        assertFalse(transcripts.isShutDown())
        transcripts.shutdown()
        transcripts.shutdown()
        assertTrue(transcripts.isShutDown())
        failing(FailureKind.CLOSED) { transcripts.get(LINK) }
        failing(FailureKind.CLOSED) { transcripts.getMany(listOf(LINK)) }
        failing(FailureKind.CLOSED) { transcripts.service().lookUp(LINK) }
        transcripts.close()
        transcripts.close()
        assertFailsWith<IllegalStateException> { transcripts.get(LINK) }
    }

    @Test
    fun `several links, each with its answer, in their order`() = check {
        shelf().useThenShutdown { transcripts ->
            val heard = mutableListOf<Answer>()
            val listener = object : ProgressListener {
                override suspend fun onStage(stage: Stage) = Unit

                override suspend fun onAnswer(answer: Answer) {
                    heard += answer
                }
            }
            val links = listOf(LINK, "no link", "jNQXAC9IVRw", LINK)
            val answers = transcripts.getMany(links, atOnce = 2u, listener = listener)
            assertEquals(links, answers.map { it.link })
            assertEquals(listOf(true, false, false, true), answers.map { it.transcript != null })
            assertEquals(FailureKind.INVALID_INPUT, answers[1].failure?.kind)
            assertEquals(answers.toSet(), heard.toSet())
            assertEquals(answers.toSet(), transcripts.answers(links, atOnce = 2).toList().toSet())
            assertTrue(transcripts.getMany(emptyList()).isEmpty())
        }
    }

    @Test
    fun `a thousand calls at the same time`() = check {
        shelf().useThenShutdown { transcripts ->
            val calls = List(1_000) { number ->
                async(Dispatchers.Default) {
                    if (number % 10 == 0) runCatching { transcripts.get("no link") }.exceptionOrNull() else transcripts.get(LINK)
                }
            }
            val found = calls.awaitAll()
            assertEquals(100, found.count { it is VerbatimException })
            assertEquals(900, found.count { it is Transcript && it.segments.size == 2 })
        }
    }

    @Test
    fun `a question is answered from the words`() = check {
        shelf().useThenShutdown { transcripts ->
            val answer = transcripts.ask(LINK, "What about the café?")
            assertContains(answer.response, "café")
            assertEquals(61.0, answer.citations.single { "café" in it.text }.start)
            assertNull(answer.creditsRemaining)
            failing(FailureKind.INVALID_INPUT) { transcripts.ask(LINK, " ") }
        }
    }

    @Test
    fun `tokens and times end calls`() = check {
        val token = CancelToken()
        assertFalse(token.isCancelled())
        shelf().useThenShutdown { transcripts ->
            token.cancel()
            assertTrue(token.isCancelled())
            failing(FailureKind.CANCELLED) { transcripts.get(LINK, call = CallOptions(cancel = token)) }
            assertEquals(2, transcripts.get(LINK, timeout = 60.seconds).segments.size)
            assertEquals(2, transcripts.get(LINK, call = within(60_000.milliseconds)).segments.size)
        }
    }
}
