package dev.verbatim

import java.io.File
import java.time.Duration
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertIs
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.delay
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch

class EngineTest {
    @Test
    fun `get returns imported transcript in all formats`() = runTest {
        archiveWithTranscript().useAndShutdown { transcripts ->
            val found = transcripts.get(LINK)
            assertEquals(listOf("It is so quiet here.", "The café is closed."), found.segments.map { it.text })
            assertEquals(1.5.seconds, found.segments[0].start)
            assertEquals(1.5.seconds, found.segments[0].duration)
            assertEquals(64.seconds, found.segments[1].end)
            assertEquals(Platform.YOU_TUBE, found.platform)
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
    fun `import search and delete change archive`() = runTest {
        archiveWithTranscript().useAndShutdown { transcripts ->
            val german = "WEBVTT\n\n00:01.000 --> 00:02.000\nAnders.\n"
            val outcome = transcripts.importCaptions(LINK, german, "de")
            assertEquals(ImportOutcome("de", 1, ImportEffect.ADDED, 0, 0), outcome)
            val loud = ImportRequest(LINK, SRT.replace("quiet", "loud").toByteArray(), language = "en", title = "A day")
            assertEquals(ImportEffect.KEPT, transcripts.importCaptions(loud).effect)
            assertEquals(ImportEffect.REPLACED, transcripts.importCaptions(loud.copy(replace = true)).effect)
            assertEquals(2u, transcripts.get(LINK).revision)
            assertEquals("A day", transcripts.get(LINK).title)
            assertEquals("de", transcripts.get(LINK, "de").language)
            val hit = transcripts.search("CAFE closed").single()
            assertEquals("The café is closed." to 61_000L, hit.text to hit.startMs)
            assertContains(hit.url, "t=61s")
            assertTrue(transcripts.search("closed", "de").isEmpty())
            assertTrue(transcripts.search("closed", limit = 0u).isEmpty())
            assertEquals(1uL, transcripts.stats().videos)
            transcripts.delete(LINK)
            assertEquals(0uL, transcripts.stats().videos)
            assertFailure(FailureKind.INVALID_INPUT) { transcripts.search(" … ") }
            assertFailure(FailureKind.INVALID_INPUT) { transcripts.importCaptions(LINK, "no captions") }
        }
    }

    @Test
    fun `get without transcript fails with kind and message`() = runTest {
        Transcripts(TranscriptsOptions(suppliers = emptyList())).useAndShutdown { transcripts ->
            val none = assertFailure(FailureKind.NOT_CONFIGURED) { transcripts.get(LINK) }
            assertEquals("config_error", none.reason)
            assertEquals(Platform.YOU_TUBE to "dQw4w9WgXcQ", none.platform to none.videoId)
            assertContains(assertNotNull(none.watchUrl), "/watch/video_site/dQw4w9WgXcQ")
            assertTrue(none.message.endsWith("."))
            assertFailure(FailureKind.NOT_CONFIGURED) { transcripts.refresh(LINK) }
            assertFailure(FailureKind.INVALID_INPUT) { transcripts.get("no link") }
            assertFailure(FailureKind.INVALID_INPUT) { transcripts.get(LINK, "no language") }
            assertFailure(FailureKind.INVALID_INPUT) { transcripts.delete("") }
            assertFailure(FailureKind.INVALID_INPUT) { transcripts.getMany(listOf(LINK), concurrency = 0u) }
        }
    }

    @Test
    fun `invalid option is named in error`() = runTest {
        val zero = TranscriptsOptions(wait = Duration.ZERO)
        for ((options, name) in listOf(
            zero to "wait",
            TranscriptsOptions(storeTimeout = Duration.ofDays(2)) to "store_timeout",
            TranscriptsOptions(storage = Storage.Folder("")) to "storage",
            TranscriptsOptions(suppliers = listOf(builtIn("unknown"))) to "unknown",
            TranscriptsOptions(suppliers = listOf(customSupplier("") { emptyList() })) to "name",
            TranscriptsOptions(proxies = listOf("not a proxy")) to "proxy",
            TranscriptsOptions(baseUrl = "zzz") to "base_url",
            TranscriptsOptions(baseUrl = "https:///watch") to "base_url",
            TranscriptsOptions(baseUrl = "ftp://verbatim.example") to "base_url",
            TranscriptsOptions(baseUrl = "https://ann@verbatim.example") to "base_url",
            twoChatModels() to "the option chat and a custom chat model",
        )) {
            val failure = assertFailure(FailureKind.INVALID_INPUT) { Transcripts(options) }
            assertContains(failure.message, name)
        }
    }

    private fun twoChatModels(): TranscriptsOptions {
        val custom = object : ChatModel {
            override suspend fun complete(messages: List<ChatMessage>, tokensMax: UInt): String = ""
        }
        return TranscriptsOptions(chat = ModelService("https://model.example/v1", "model"), chatModel = custom)
    }

    @Test
    fun `folder storage survives pause and restart`() = runTest {
        val storage = File(temporaryFolder().toFile(), "deep/er")
        openTranscripts(storage, TranscriptsOptions(suppliers = emptyList())).useAndShutdown { transcripts ->
            transcripts.importCaptions(LINK, SRT, "en")
            transcripts.pause()
            assertEquals(2, transcripts.get(LINK).segments.size)
            transcripts.pause()
            transcripts.pause()
        }
        assertTrue(File(storage, "archive.db").length() > 0 && File(storage, "verbatim.db").length() > 0)
        val file = File(storage, "archive.db").path
        Transcripts(TranscriptsOptions(storage = Storage.ArchiveFile(file), suppliers = emptyList())).use {
            assertEquals(2, it.get(LINK).segments.size)
        }
        val damaged = File(storage, "damaged.db")
        damaged.writeBytes("SQLite format 3\u0000".toByteArray() + ByteArray(5_000) { -1 })
        Transcripts(TranscriptsOptions(storage = Storage.ArchiveFile(damaged.path))).use {
            assertFailure(FailureKind.CORRUPT) { it.get(LINK) }
        }
        Transcripts(TranscriptsOptions(storage = Storage.Folder("/dev/null/x"))).use {
            assertFailure(FailureKind.UNAVAILABLE) { it.get(LINK) }
        }
    }

    @Test
    fun `pause after end of flow leaves no file open`() = runTest {
        val storage = temporaryFolder().toRealPath().toFile()
        val started = CompletableDeferred<Unit>()
        val slow = customSupplier("slow") { request ->
            started.complete(Unit)
            delay(20)
            listOf(transcriptOf(request, "Hello."))
        }
        openTranscripts(storage, TranscriptsOptions(suppliers = listOf(slow))).useAndShutdown { transcripts ->
            val flow = launch { transcripts.getAll(List(50) { "%011d".format(it) }).collect {} }
            started.await()
            flow.cancelAndJoin()
            transcripts.pause()
            assertEquals(emptyList<String>(), openFiles(storage))
        }
    }

    @Test
    fun `each pause and shutdown waits for running fetch`() = runTest {
        val storage = temporaryFolder().toRealPath().toFile()
        val (started, ended) = List(2) { AtomicInteger() }
        val slow = customSupplier("slow") { request ->
            started.incrementAndGet()
            delay(1.seconds)
            listOf(transcriptOf(request, "Hello.")).also { ended.incrementAndGet() }
        }
        openTranscripts(storage, TranscriptsOptions(suppliers = listOf(slow))).use { transcripts ->
            val first = async(Dispatchers.Default) { transcripts.get("aaaaaaaaaaa") }
            waitUntil { started.get() == 1 }
            assertFailure(FailureKind.TIMED_OUT) { transcripts.pause(callTimeout(50.milliseconds)) }
            transcripts.pause()
            assertEquals(1, ended.get())
            assertEquals(emptyList<String>(), openFiles(storage))
            assertEquals(1, first.await().segments.size)
            val second = async(Dispatchers.Default) { transcripts.get("bbbbbbbbbbb") }
            waitUntil { started.get() == 2 }
            val pause = launch { transcripts.pause() }
            delay(50)
            transcripts.shutdown()
            assertEquals(2, ended.get())
            assertEquals(emptyList<String>(), openFiles(storage))
            assertEquals(1, second.await().segments.size)
            pause.join()
        }
    }

    @Test
    fun `memory storage survives pause`() = runTest {
        archiveWithTranscript().useAndShutdown { transcripts ->
            transcripts.pause()
            assertTrue(transcripts.get(LINK).fromCache)
        }
    }

    @Test
    fun `flow continues after link that is no unicode`() = runTest {
        archiveWithTranscript().useAndShutdown { transcripts ->
            val results = transcripts.getAll(listOf(LINK, "\uD83D", LINK)).toList()
            assertEquals(3, results.size)
            val failure = results.single { it.transcript == null }.failure
            assertEquals(FailureKind.INVALID_INPUT, failure?.kind)
        }
    }

    @Test
    fun `record with key does not print it`() {
        val records = listOf<Any>(
            ClientOptions("https://verbatim.example", key = "vbk_secret"),
            RemoteServer("https://verbatim.example", "vbk_secret"),
            ModelService("https://model.example/v1", "model", apiKey = "secret"),
            TranscriptsOptions(proxies = listOf("http://user:secret@proxy.example")),
            MailMessage("ann@example.org", "Subject", "secret", "secret"),
            VerifyResponse("vba_secret", 1, "free", null),
        )
        for (record in records) assertFalse("secret" in "$record", "$record")
    }

    @Test
    fun `call after shutdown fails as closed`() = runTest {
        val transcripts = archiveWithTranscript()
        assertFalse(transcripts.isShutDown())
        transcripts.shutdown()
        transcripts.shutdown()
        assertTrue(transcripts.isShutDown())
        assertFailure(FailureKind.CLOSED) { transcripts.get(LINK) }
        assertFailure(FailureKind.CLOSED) { transcripts.getMany(listOf(LINK)) }
        assertFailure(FailureKind.CLOSED) { transcripts.service().lookUp(LINK) }
        transcripts.close()
        transcripts.close()
        assertFailsWith<IllegalStateException> { transcripts.get(LINK) }
    }

    @Test
    fun `closed argument fails before call`() = runTest {
        archiveWithTranscript().useAndShutdown { transcripts ->
            val batch = Batch(Duration.ofSeconds(1)).also { it.close() }
            assertFailsWith<IllegalStateException> { transcripts.get(LINK, batch = batch) }
            val token = CancelToken().also { it.close() }
            assertFailsWith<IllegalStateException> { transcripts.get(LINK, call = CallOptions(cancel = token)) }
            val archive = memoryArchive().also { (it as AutoCloseable).close() }
            assertFailsWith<IllegalStateException> { Transcripts(TranscriptsOptions(archive = archive)) }
            repeat(200) {
                val shared = CancelToken()
                val call = CallOptions(cancel = shared)
                val calls = List(4) { async(Dispatchers.Default) { runCatching { transcripts.get(LINK, call = call) } } }
                shared.close()
                for (outcome in calls.awaitAll()) outcome.onFailure { assertIs<IllegalStateException>(it) }
            }
        }
    }

    @Test
    fun `get many returns results in order of links`() = runTest {
        archiveWithTranscript().useAndShutdown { transcripts ->
            val received = mutableListOf<BatchResult>()
            val listener = object : ProgressListener {
                override suspend fun onStage(stage: Stage) = Unit

                override suspend fun onResult(result: BatchResult) {
                    received += result
                }
            }
            val links = listOf(LINK, "no link", "jNQXAC9IVRw", LINK)
            val results = transcripts.getMany(links, concurrency = 2u, listener = listener)
            assertEquals(links, results.map { it.link })
            assertEquals(listOf(true, false, false, true), results.map { it.transcript != null })
            assertEquals(FailureKind.INVALID_INPUT, results[1].failure?.kind)
            assertEquals(results.toSet(), received.toSet())
            assertEquals(results.toSet(), transcripts.getAll(links, concurrency = 2).toList().toSet())
            assertTrue(transcripts.getMany(emptyList()).isEmpty())
        }
    }

    @Test
    fun `archived transcripts are listed in pages`() = runTest {
        archiveWithTranscript().useAndShutdown { transcripts ->
            transcripts.importCaptions(LINK, SRT, "de")
            transcripts.importCaptions("jNQXAC9IVRw", SRT, "en")
            val all = transcripts.archived().toList()
            assertEquals(listOf("dQw4w9WgXcQ", "dQw4w9WgXcQ", "jNQXAC9IVRw"), all.map { it.videoId })
            assertEquals(setOf("de", "en"), all.take(2).map { it.language }.toSet())
            val first = transcripts.archivedPage(limit = 1u)
            assertEquals(all.take(1), first.transcripts)
            assertEquals(all.drop(1), transcripts.archivedPage(first.next).transcripts)
        }
    }

    @Test
    fun `thousand concurrent calls all return`() = runTest {
        archiveWithTranscript().useAndShutdown { transcripts ->
            val calls = List(1_000) { number ->
                async(Dispatchers.Default) {
                    val link = if (number % 10 == 0) "no link" else LINK
                    runCatching { transcripts.get(link) }.let { it.getOrNull() ?: it.exceptionOrNull() }
                }
            }
            val found = calls.awaitAll()
            assertEquals(100, found.count { it is VerbatimException })
            assertEquals(900, found.count { it is Transcript && it.segments.size == 2 })
        }
    }

    @Test
    fun `question is answered from transcript`() = runTest {
        archiveWithTranscript().useAndShutdown { transcripts ->
            val answer = transcripts.ask(LINK, "What about the café?")
            assertContains(answer.response, "café")
            assertEquals(61.0, answer.citations.single { "café" in it.text }.start)
            assertNull(answer.creditsRemaining)
            assertFailure(FailureKind.INVALID_INPUT) { transcripts.ask(LINK, " ") }
        }
    }

    @Test
    fun `token and timeout end call`() = runTest {
        val token = CancelToken()
        assertFalse(token.isCancelled())
        archiveWithTranscript().useAndShutdown { transcripts ->
            token.cancel()
            assertTrue(token.isCancelled())
            assertFailure(FailureKind.CANCELLED) { transcripts.get(LINK, call = CallOptions(cancel = token)) }
            assertEquals(2, transcripts.get(LINK, timeout = 60.seconds).segments.size)
            assertEquals(2, transcripts.get(LINK, call = callTimeout(60_000.milliseconds)).segments.size)
        }
    }
}
