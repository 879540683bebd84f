package dev.verbatim

import com.sun.net.httpserver.HttpServer
import java.net.InetSocketAddress
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse
import java.time.Duration
import java.util.concurrent.CountDownLatch
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
import kotlin.time.measureTime
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.withTimeout

class SupplierTest {
    private fun transcriptsWith(vararg suppliers: SupplierSpec) =
        Transcripts(TranscriptsOptions(suppliers = suppliers.toList()))

    @Test
    fun `supplier is called once per missing transcript`() = runTest {
        val calls = AtomicInteger()
        val custom = customSupplier("mine") { request ->
            calls.incrementAndGet()
            assertTrue(request.url.contains(request.videoId) && !request.timeout.isZero)
            assertFalse(request.monitor.isCancelled())
            delay(20)
            listOf(transcriptOf(request, "one", "two"))
        }
        transcriptsWith(custom).useAndShutdown { transcripts ->
            val found = List(100) { async(Dispatchers.Default) { transcripts.get(LINK) } }.awaitAll()
            assertEquals(1, calls.get())
            assertEquals(setOf("mine"), found.map { it.source }.toSet())
            assertTrue(transcripts.get(LINK).fromCache)
            assertEquals("fr", transcripts.get(LINK, "fr").language)
            assertEquals(2, calls.get())
            assertEquals(false, transcripts.refresh(LINK).isChanged)
        }
    }

    @Test
    fun `supplier metadata and words are archived`() = runTest {
        val metadata = VideoMetadata(
            authorId = "UC-x",
            authorUrl = "javascript:alert(1)",
            publishedAt = 1_700_000_000_123,
            live = LiveStatus.WAS_LIVE,
            chapters = listOf(Chapter("Start", 0), Chapter("Late", 3_600_001)),
        )
        val words = listOf(Word("so", 10, 200), Word("go", 700, 33))
        val custom = customSupplier("mine") { request ->
            val segments = listOf(Segment("so, we go", 0, 900, words), Segment("on", 900, 100))
            val tracks = listOf(TrackInfo("de", TrackKind.TRANSLATED))
            val transcript = transcriptOf(request, "").copy(segments = segments, durationMs = 3_600_000)
            listOf(transcript.copy(metadata = metadata, tracks = tracks))
        }
        val options = TranscriptsOptions(suppliers = listOf(custom), archive = KotlinArchive())
        Transcripts(options).useAndShutdown { transcripts ->
            for (fromCache in listOf(false, true)) {
                val found = transcripts.get(LINK)
                assertEquals(fromCache, found.fromCache)
                assertEquals(listOf(words, emptyList()), found.segments.map { it.words })
                assertEquals(700.milliseconds to 733.milliseconds, found.segments[0].words[1].let { it.start to it.end })
                assertEquals(metadata.copy(authorUrl = null, chapters = found.chapters), found.metadata)
                assertEquals(listOf("Start"), found.chapters.map { it.title })
                val chunk = found.chunks(60.seconds).single()
                assertTrue(chunk.end > chunk.start && chunk.url.isNotEmpty(), "$chunk")
                assertEquals(found.segments, found.pages().single().segments)
                assertEquals(found.segments, found.pages(maxChars = 1u).flatMap { it.segments })
                assertEquals("2023-11-14T22:13:20.123Z", found.metadata.published.toString())
                assertEquals(listOf("German", "English"), found.tracks.map { it.displayName })
            }
            assertTrue(transcripts.search("go").first().transcript.segments.all { it.words.isEmpty() })
        }
    }

    @Test
    fun `supplier serves thousand concurrent videos`() = runTest {
        val custom = customSupplier("mine") { request ->
            delay(10)
            listOf(transcriptOf(request, "of ${request.videoId}"))
        }
        transcriptsWith(custom).useAndShutdown { transcripts ->
            val links = List(1_000) { "%011d".format(it) }
            val results = transcripts.getMany(links, concurrency = 100u)
            assertEquals(links.map { "of $it" }, results.map { it.transcript?.segments?.single()?.text })
        }
    }

    @Test
    fun `many links wait for platform that throttles once`() = runTest {
        val calls = AtomicInteger()
        val custom = customSupplier("mine") { request ->
            if (calls.getAndIncrement() == 0) throw supplyError(SupplyReason.THROTTLED, "Slow down.", 1.seconds)
            listOf(transcriptOf(request, "of ${request.videoId}"))
        }
        val links = List(3) { "%011d".format(it) }
        transcriptsWith(custom).useAndShutdown { transcripts ->
            assertTrue(transcripts.getMany(links, concurrency = 1u).all { it.transcript != null })
        }
        calls.set(0)
        transcriptsWith(custom).useAndShutdown { transcripts ->
            assertTrue(transcripts.getAll(links, concurrency = 1).toList().all { it.transcript != null })
        }
        calls.set(0)
        transcriptsWith(custom).useAndShutdown { transcripts ->
            val results = transcripts.getAll(links, concurrency = 1, maxWait = 0.seconds).toList()
            assertEquals(FailureKind.RATE_LIMITED, results.first().failure?.kind)
        }
    }

    @Test
    fun `archived transcript is found without fetch`() = runTest {
        val calls = AtomicInteger()
        val custom = customSupplier("mine") { request ->
            calls.incrementAndGet()
            listOf(transcriptOf(request, "x"))
        }
        transcriptsWith(custom).useAndShutdown { transcripts ->
            assertNull(transcripts.findArchived(LINK))
            assertEquals(0, calls.get())
            val track = transcripts.tracks(LINK).single()
            assertEquals("en" to 1u, track.track.language to assertNotNull(track.revision))
            assertEquals("x", transcripts.findArchived(LINK)?.segments?.single()?.text)
            assertNull(transcripts.findArchived(LINK, "fr"))
            assertEquals(1, calls.get())
        }
    }

    @Test
    fun `other languages and translations are requested`() = runTest {
        val custom = customSupplier("mine") { request ->
            if (request.language != "fr" && !(request.language == "de" && request.translated)) {
                throw supplyError(SupplyReason.NO_LANGUAGE, "It has no such language.")
            }
            listOf(transcriptOf(request, "x"))
        }
        fun languages(results: List<BatchResult>) = results.map { it.transcript?.language }
        transcriptsWith(custom).useAndShutdown { transcripts ->
            val others = listOf("fr")
            assertEquals("fr", transcripts.get(LINK, "nl", otherLanguages = others).language)
            assertEquals("fr", transcripts.findArchived(LINK, "nl", otherLanguages = others)?.language)
            val links = listOf("https://youtu.be/aaaaaaaaaaa")
            assertEquals(listOf("fr"), languages(transcripts.getMany(links, "de", otherLanguages = others)))
            assertEquals(listOf("de"), languages(transcripts.getMany(links, "de", translated = true)))
            val more = listOf("https://youtu.be/bbbbbbbbbbb")
            assertEquals(listOf("fr"), languages(transcripts.getAll(more, "de", otherLanguages = others).toList()))
            assertEquals(listOf("de"), languages(transcripts.getAll(more, "de", translated = true).toList()))
            assertFailure(FailureKind.NO_CAPTIONS) { transcripts.refresh(LINK, "de") }
            assertEquals("de", transcripts.refresh(LINK, "de", translated = true).transcript.language)
        }
    }

    @Test
    fun `failure has reason of supplier`() = runTest {
        for (reason in listOf(SupplyReason.PRIVATE, SupplyReason.LIVE, SupplyReason.NO_LANGUAGE, SupplyReason.NO_CAPTIONS)) {
            val failing = customSupplier("mine") { throw supplyError(reason, "It says no.") }
            transcriptsWith(failing).useAndShutdown { transcripts ->
                assertEquals(reason.name.lowercase(), assertFailure(FailureKind.NO_CAPTIONS) { transcripts.get(LINK) }.reason)
            }
        }
    }

    @Test
    fun `exception or invalid transcript does not pause supplier`() = runTest {
        val codes: List<suspend (SupplyRequest) -> List<Transcript>> = listOf(
            { throw IllegalStateException("a bug") },
            { throw supplyError(SupplyReason.UNEXPECTED, "A bug.") },
            { listOf(transcriptOf(it, "x").copy(videoId = "another-one")) },
            { listOf(transcriptOf(it, " ")) },
            { listOf(transcriptOf(it, "x").copy(language = "no language")) },
        )
        for (code in codes) {
            val custom = customSupplier("mine") { if (it.videoId == "dQw4w9WgXcQ") listOf(transcriptOf(it, "x")) else code(it) }
            transcriptsWith(custom).useAndShutdown { transcripts ->
                for (number in 0..7) {
                    assertFailure(FailureKind.FETCH_FAILED) { transcripts.get("%011d".format(number)) }
                }
                assertEquals("mine", transcripts.get(LINK).source)
            }
        }
    }

    @Test
    fun `supply error kind decides failure kind`() = runTest {
        for ((reason, kind) in mapOf(
            SupplyReason.PRIVATE to FailureKind.NO_CAPTIONS,
            SupplyReason.NO_CAPTIONS to FailureKind.NO_CAPTIONS,
            SupplyReason.THROTTLED to FailureKind.RATE_LIMITED,
            SupplyReason.UNREACHABLE to FailureKind.FETCH_FAILED,
            SupplyReason.MISCONFIGURED to FailureKind.NOT_CONFIGURED,
        )) {
            val failing = customSupplier("mine") { throw supplyError(reason, "It says no.", 7.seconds) }
            transcriptsWith(failing).useAndShutdown { transcripts ->
                assertContains(assertFailure(kind) { transcripts.get(LINK) }.message, "It says no.")
            }
        }
        val empty = customSupplier("mine") { emptyList() }
        transcriptsWith(empty).useAndShutdown { assertFailure(FailureKind.NO_CAPTIONS) { it.get(LINK) } }
    }

    @Test
    fun `empty supplier falls back to next supplier`() = runTest {
        val first = customSupplier("first", listOf(Platform.YOU_TUBE)) { emptyList() }
        val second = customSupplier("second", kind = SupplierKind.SPEECH) { request ->
            listOf(transcriptOf(request, "spoken").copy(kind = TrackKind.GENERATED))
        }
        transcriptsWith(first, second).useAndShutdown { transcripts ->
            assertEquals("second", transcripts.get(LINK).source)
            assertEquals("second", transcripts.get("https://x.com/a/status/20").source)
        }
    }

    @Test
    fun `throwing or invalid supplier fails only its call`() = runTest {
        val codes: List<suspend (SupplyRequest) -> List<Transcript>> = listOf(
            { throw IllegalStateException("a bug") },
            { throw OutOfMemoryError("not really") },
            { throw IllegalStateException("\uD800") },
            { throw supplyError(SupplyReason.PRIVATE, "\uD800") },
            { throw verbatimError(FailureKind.CORRUPT, "of the wrong kind") },
            { throw CancellationException("cancelled in the supplier") },
            { throw ExceptionWithoutText() },
            { listOf(transcriptOf(it, "x").copy(videoId = "another-one")) },
            { listOf(transcriptOf(it, "x").copy(videoId = "\u0000")) },
            { listOf(transcriptOf(it, "x").copy(language = "no language")) },
            { listOf(transcriptOf(it, "x").copy(segments = emptyList())) },
            { listOf(transcriptOf(it, "x").copy(segments = listOf(Segment("x", -1, -1)))) },
            { listOf(transcriptOf(it, "x").copy(segments = listOf(Segment("x", Long.MAX_VALUE, Long.MAX_VALUE)))) },
            { listOf(transcriptOf(it, "x").copy(segments = listOf(Segment("x", 0, 1, listOf(Word("y", 0, 1)))))) },
            { listOf(transcriptOf(it, "x").copy(segments = listOf(Segment("x", 0, 1, listOf(Word("x", -1, 1)))))) },
            { listOf(transcriptOf(it, "x").copy(metadata = VideoMetadata(chapters = listOf(Chapter("x", -1))))) },
            { listOf(transcriptOf(it, "\uD800")) },
        )
        for ((number, code) in codes.withIndex()) {
            transcriptsWith(customSupplier("mine", supply = code)).useAndShutdown { transcripts ->
                val outcome = runCatching { transcripts.get(LINK) }
                val failure = assertIs<VerbatimException>(outcome.exceptionOrNull() ?: return@useAndShutdown).failure
                assertTrue(failure.message.isNotEmpty(), "$number: $failure")
            }
        }
    }

    @Test
    fun `hanging supplier ends at timeout`() = runTest {
        val hanging = customSupplier("mine") { awaitCancellation() }
        val options = TranscriptsOptions(suppliers = listOf(hanging), supplierTimeout = Duration.ofMillis(50))
        Transcripts(options).useAndShutdown {
            assertContains(assertFailure(FailureKind.FETCH_FAILED) { it.get(LINK) }.message, "did not answer in time")
        }
        transcriptsWith(hanging).useAndShutdown { transcripts ->
            assertFailure(FailureKind.TIMED_OUT) { transcripts.get(LINK, timeout = 50.milliseconds) }
        }
    }

    @Test
    fun `blocking supplier does not delay other calls`() = runTest {
        val blocking = customSupplier("mine") {
            @Suppress("BlockingMethodInNonBlockingContext")
            Thread.sleep(300)
            listOf(transcriptOf(it, "late"))
        }
        transcriptsWith(blocking).useAndShutdown { transcripts ->
            val late = async { transcripts.get(LINK) }
            assertFailure(FailureKind.INVALID_INPUT) { transcripts.get("no link") }
            assertEquals("late", late.await().segments.single().text)
        }
    }

    @Test
    fun `blocking suppliers do not stop store of the app`() = runTest {
        val running = AtomicInteger()
        val released = CountDownLatch(1)
        val blocking = customSupplier("mine") {
            running.incrementAndGet()
            @Suppress("BlockingMethodInNonBlockingContext")
            released.await()
            listOf(transcriptOf(it, "late"))
        }
        val options = TranscriptsOptions(suppliers = listOf(blocking), archive = KotlinArchive())
        archiveWithTranscript(options).useAndShutdown { transcripts ->
            // More than the threads for work that does not block: one per core.
            val links = List((Runtime.getRuntime().availableProcessors() + 2).coerceAtMost(40)) { "%011d".format(it) }
            val late = links.map { async { transcripts.get(it) } }
            try {
                withTimeout(20.seconds) { waitUntil { running.get() == links.size } }
                assertEquals(2, transcripts.get(LINK).segments.size)
            } finally {
                released.countDown()
            }
            assertEquals(links.size, late.awaitAll().size)
        }
    }

    @Test
    fun `supplier calls transcripts again`() = runTest {
        lateinit var transcripts: Transcripts
        val custom = customSupplier("mine") { request ->
            val text = if (request.videoId == "aaaaaaaaaaa") transcripts.get("bbbbbbbbbbb").segments.single().text else "nested"
            listOf(transcriptOf(request, text))
        }
        transcripts = transcriptsWith(custom)
        transcripts.useAndShutdown { assertEquals("nested", it.get("aaaaaaaaaaa").segments.single().text) }
    }

    @Test
    fun `supplier waiting for itself ends at timeout`() = runTest {
        lateinit var transcripts: Transcripts
        val custom = customSupplier("mine") { listOf(transcripts.get(LINK)) }
        val options = TranscriptsOptions(suppliers = listOf(custom), supplierTimeout = Duration.ofMillis(500))
        transcripts = Transcripts(options)
        transcripts.useAndShutdown { assertFailure(FailureKind.TIMED_OUT) { it.get(LINK, timeout = 100.milliseconds) } }
    }

    @Test
    fun `cancelled coroutine cancels supplier`() = runTest {
        val ended = CompletableDeferred<Unit>()
        val started = CompletableDeferred<SupplyMonitor>()
        val custom = customSupplier("mine") { request ->
            started.complete(request.monitor)
            try {
                awaitCancellation()
            } finally {
                ended.complete(Unit)
            }
        }
        transcriptsWith(custom).useAndShutdown { transcripts ->
            val call = launch(Dispatchers.Default) { transcripts.get(LINK) }
            val monitor = started.await()
            call.cancelAndJoin()
            ended.await()
            waitUntil { monitor.isCancelled() }
            assertFailsWith<TimeoutCancellationException> { withTimeout(30) { transcripts.get("bbbbbbbbbbb") } }
            repeat(200) { micros ->
                val brief = launch(Dispatchers.Default) { runCatching { transcripts.get("ccccccccccc") } }
                val deadline = System.nanoTime() + micros * 5_000L
                while (System.nanoTime() < deadline) Thread.onSpinWait()
                brief.cancelAndJoin()
            }
        }
    }

    @Test
    fun `token cancels supplier`() = runTest {
        val started = CompletableDeferred<Unit>()
        val custom = customSupplier("mine") {
            started.complete(Unit)
            awaitCancellation()
        }
        transcriptsWith(custom).useAndShutdown { transcripts ->
            val token = CancelToken()
            val call = async { runCatching { transcripts.get(LINK, call = CallOptions(cancel = token)) } }
            started.await()
            token.cancel()
            assertFailure(FailureKind.CANCELLED) { call.await().getOrThrow() }
        }
    }

    @Test
    fun `updates returns stages then transcript`() = runTest {
        val custom = customSupplier("mine") { request ->
            for (done in 1L..3L) request.monitor.reportProgress("reading", done, 3)
            listOf(transcriptOf(request, "done"))
        }
        transcriptsWith(custom).useAndShutdown { transcripts ->
            val updates = transcripts.updates(LINK).toList()
            assertEquals("done", assertIs<TranscriptUpdate.Done>(updates.last()).transcript.segments.single().text)
            val stages = updates.dropLast(1).map { assertIs<TranscriptUpdate.Stage>(it).stage }
            assertEquals(listOf(1L, 2L, 3L), stages.filter { it.name == "reading" }.map { it.done })
            assertEquals(setOf("mine"), stages.map { it.supplier }.toSet())
        }
    }

    @Test
    fun `throwing or hanging listener has no effect`() = runTest {
        val custom = customSupplier("mine") { request ->
            repeat(1_000) { request.monitor.reportProgress("reading", it.toLong(), 1_000) }
            listOf(transcriptOf(request, "done"))
        }
        val listeners = listOf<suspend () -> Unit>({ throw IllegalStateException("a bug") }, { awaitCancellation() })
        for (listener in listeners) transcriptsWith(custom).useAndShutdown { transcripts ->
            val faulty = object : ProgressListener {
                override suspend fun onStage(stage: Stage) = listener()

                override suspend fun onResult(result: BatchResult) = listener()
            }
            assertEquals("done", transcripts.get(LINK, listener = faulty).segments.single().text)
            assertEquals(1, transcripts.getMany(listOf(LINK), listener = faulty).size)
            // The wait for the listener is no part of the call.
            val call = callTimeout(900.milliseconds)
            assertEquals("done", transcripts.get("bbbbbbbbbbb", listener = faulty, call = call).segments.single().text)
        }
    }

    @Test
    fun `slow listener receives all results and hanging one ends`() = runTest {
        val links = List(600) { "%011d".format(it) }
        val received = AtomicInteger()
        val listeners = listOf<suspend () -> Unit>({ delay(5) }, { awaitCancellation() }).map { work ->
            object : ProgressListener {
                override suspend fun onStage(stage: Stage) = Unit

                override suspend fun onResult(result: BatchResult) {
                    work()
                    received.incrementAndGet()
                }
            }
        }
        transcriptsWith(customSupplier("mine") { listOf(transcriptOf(it, "done")) }).useAndShutdown { transcripts ->
            transcripts.getMany(links, concurrency = 100u)
            transcripts.getMany(links, listener = listeners[0])
            assertEquals(600, received.get())
            val time = measureTime { transcripts.getMany(links, listener = listeners[1]) }
            assertTrue(time < 30.seconds, "$time")
        }
    }

    @Test
    fun `listener of short link receives stages of its video only`() = runTest {
        val target = Video(Platform.TIK_TOK, "7123456789012345678")
        val archive = object : ArchiveStore by KotlinArchive() {
            override suspend fun shortLink(link: ShortLinkId): VideoId? = target
        }
        val (started, released) = List(2) { CompletableDeferred<Unit>() }
        val custom = customSupplier("mine") { request ->
            request.monitor.reportProgress("reading", 1, 1)
            if (request.videoId == target.id) {
                started.complete(Unit)
                released.await()
            }
            listOf(transcriptOf(request, "done"))
        }
        val options = TranscriptsOptions(suppliers = listOf(custom), archive = archive)
        Transcripts(options).useAndShutdown { transcripts ->
            val updates = async { transcripts.updates("https://vm.tiktok.com/ZMabc12De/").toList() }
            started.await()
            transcripts.get(LINK)
            released.complete(Unit)
            val stages = updates.await().filterIsInstance<TranscriptUpdate.Stage>().map { it.stage.videoId }
            assertEquals(setOf(target.id), stages.toSet())
        }
    }

    @Test
    fun `supplier fetches captions with java http client`() = runTest {
        val server = HttpServer.create(InetSocketAddress("127.0.0.1", 0), 0)
        server.createContext("/captions") { exchange ->
            val body = SRT.toByteArray()
            exchange.sendResponseHeaders(200, body.size.toLong())
            exchange.responseBody.use { it.write(body) }
        }
        server.start()
        try {
            val http = HttpClient.newHttpClient()
            val custom = customSupplier("over-java") { request ->
                val address = URI("http://127.0.0.1:${server.address.port}/captions?v=${request.videoId}")
                val httpRequest = HttpRequest.newBuilder(address)
                val response = http.send(httpRequest.build(), HttpResponse.BodyHandlers.ofByteArray())
                listOf(transcriptOf(request).copy(segments = parseCaptions(response.body())))
            }
            transcriptsWith(custom).useAndShutdown {
                assertEquals("The café is closed.", it.get(LINK).segments[1].text)
            }
        } finally {
            server.stop(0)
        }
    }
}
