package dev.verbatim

import com.sun.net.httpserver.HttpServer
import java.net.InetSocketAddress
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse
import java.time.Duration
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
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
    private fun of(vararg choices: SupplierChoice) = Transcripts(TranscriptsOptions(suppliers = choices.toList()))

    @Test
    fun `it is asked for what is not archived, once`() = check {
        val asked = AtomicInteger()
        val own = supplier("mine") { ask ->
            asked.incrementAndGet()
            assertTrue(ask.url.contains(ask.videoId) && !ask.time.isZero && !ask.watcher.isCancelled())
            delay(20)
            listOf(words(ask, "one", "two"))
        }
        of(own).useThenShutdown { transcripts ->
            val found = List(100) { async(Dispatchers.Default) { transcripts.get(LINK) } }.awaitAll()
            assertEquals(1, asked.get())
            assertEquals(setOf("mine"), found.map { it.source }.toSet())
            assertTrue(transcripts.get(LINK).fromCache)
            assertEquals("fr", transcripts.get(LINK, "fr").language)
            assertEquals(2, asked.get())
            assertEquals(false, transcripts.refresh(LINK).isChanged)
        }
    }

    @Test
    fun `a thousand videos at the same time`() = check {
        val own = supplier("mine") { ask ->
            delay(10)
            listOf(words(ask, "of ${ask.videoId}"))
        }
        of(own).useThenShutdown { transcripts ->
            val links = List(1_000) { "%011d".format(it) }
            val answers = transcripts.getMany(links, atOnce = 100u)
            assertEquals(links.map { "of $it" }, answers.map { it.transcript?.segments?.single()?.text })
        }
    }

    @Test
    fun `what it fails with decides what is told`() = check {
        for ((reason, kind) in mapOf(
            SupplyReason.PRIVATE to FailureKind.NO_CAPTIONS,
            SupplyReason.NO_CAPTIONS to FailureKind.NO_CAPTIONS,
            SupplyReason.THROTTLED to FailureKind.RATE_LIMITED,
            SupplyReason.UNREACHABLE to FailureKind.FETCH_FAILED,
            SupplyReason.MISCONFIGURED to FailureKind.NOT_CONFIGURED,
        )) {
            of(supplier("mine") { throw noTranscript(reason, "It says no.", 7.seconds) }).useThenShutdown { transcripts ->
                assertContains(failing(kind) { transcripts.get(LINK) }.sentence, "It says no.")
            }
        }
        of(supplier("mine") { emptyList() }).useThenShutdown { failing(FailureKind.NO_CAPTIONS) { it.get(LINK) } }
    }

    @Test
    fun `the next one is asked when one has nothing`() = check {
        val first = supplier("first", listOf(Platform.VIDEO_SITE)) { emptyList() }
        val second = supplier("second", kind = SupplierKind.SPEECH) { ask ->
            listOf(words(ask, "heard").copy(kind = TrackKind.GENERATED))
        }
        of(first, second).useThenShutdown { transcripts ->
            assertEquals("second", transcripts.get(LINK).source)
            assertEquals("second", transcripts.get("https://x.com/a/status/20").source)
        }
    }

    @Test
    fun `code that throws, or returns nonsense, is a fault of its own`() = check {
        val codes: List<suspend (SupplierAsk) -> List<Transcript>> = listOf(
            { throw IllegalStateException("a bug") },
            { throw OutOfMemoryError("not really") },
            { throw IllegalStateException("\uD800") },
            { throw noTranscript(SupplyReason.PRIVATE, "\uD800") },
            { throw failed(FailureKind.CORRUPT, "of the wrong kind") },
            { throw CancellationException("cancelled by itself") },
            { listOf(words(it, "x").copy(videoId = "another-one")) },
            { listOf(words(it, "x").copy(videoId = "\u0000")) },
            { listOf(words(it, "x").copy(language = "no language")) },
            { listOf(words(it, "x").copy(segments = emptyList())) },
            { listOf(words(it, "x").copy(segments = listOf(Segment("x", -1, -1)))) },
            { listOf(words(it, "x").copy(segments = listOf(Segment("x", Long.MAX_VALUE, Long.MAX_VALUE)))) },
            { listOf(words(it, "\uD800")) },
        )
        for ((number, code) in codes.withIndex()) {
            of(supplier("mine", supply = code)).useThenShutdown { transcripts ->
                val outcome = runCatching { transcripts.get(LINK) }
                val failure = assertIs<VerbatimException>(outcome.exceptionOrNull() ?: return@useThenShutdown).failure
                assertTrue(failure.sentence.isNotEmpty(), "$number: $failure")
            }
        }
    }

    @Test
    fun `code that never returns ends with the time that it has`() = check {
        val hanging = supplier("mine") { awaitCancellation() }
        Transcripts(TranscriptsOptions(suppliers = listOf(hanging), supplierTimeout = Duration.ofMillis(50))).useThenShutdown {
            assertContains(failing(FailureKind.FETCH_FAILED) { it.get(LINK) }.sentence, "did not answer in time")
        }
        of(hanging).useThenShutdown { transcripts ->
            failing(FailureKind.TIMED_OUT) { transcripts.get(LINK, timeout = 50.milliseconds) }
        }
    }

    @Test
    fun `code that blocks its thread holds nobody else up`() = check {
        val blocking = supplier("mine") {
            @Suppress("BlockingMethodInNonBlockingContext")
            Thread.sleep(300)
            listOf(words(it, "late"))
        }
        of(blocking).useThenShutdown { transcripts ->
            val late = async { transcripts.get(LINK) }
            failing(FailureKind.INVALID_INPUT) { transcripts.get("no link") }
            assertEquals("late", late.await().segments.single().text)
        }
    }

    @Test
    fun `code may call back`() = check {
        lateinit var transcripts: Transcripts
        val own = supplier("mine") { ask ->
            if (ask.videoId == "aaaaaaaaaaa") listOf(words(ask, transcripts.get("bbbbbbbbbbb").segments.single().text))
            else listOf(words(ask, "from within"))
        }
        transcripts = of(own)
        transcripts.useThenShutdown { assertEquals("from within", it.get("aaaaaaaaaaa").segments.single().text) }
    }

    @Test
    fun `code that waits for itself ends with its time`() = check {
        lateinit var transcripts: Transcripts
        val own = supplier("mine") { listOf(transcripts.get(LINK)) }
        val soon = TranscriptsOptions(suppliers = listOf(own), supplierTimeout = Duration.ofMillis(500))
        transcripts = Transcripts(soon)
        transcripts.useThenShutdown { failing(FailureKind.TIMED_OUT) { it.get(LINK, timeout = 100.milliseconds) } }
    }

    @Test
    fun `cancelling ends the work, at any moment`() = check {
        val ended = CompletableDeferred<Unit>()
        val begun = CompletableDeferred<Watcher>()
        val own = supplier("mine") { ask ->
            begun.complete(ask.watcher)
            try {
                awaitCancellation()
            } finally {
                ended.complete(Unit)
            }
        }
        of(own).useThenShutdown { transcripts ->
            val call = launch(Dispatchers.Default) { transcripts.get(LINK) }
            val watcher = begun.await()
            call.cancelAndJoin()
            ended.await()
            until { watcher.isCancelled() }
            assertFailsWith<TimeoutCancellationException> { withTimeout(30) { transcripts.get("bbbbbbbbbbb") } }
            repeat(200) { micros ->
                val fleeting = launch(Dispatchers.Default) { runCatching { transcripts.get("ccccccccccc") } }
                val until = System.nanoTime() + micros * 5_000L
                while (System.nanoTime() < until) Thread.onSpinWait()
                fleeting.cancelAndJoin()
            }
        }
    }

    @Test
    fun `a token ends the work`() = check {
        val begun = CompletableDeferred<Unit>()
        val own = supplier("mine") {
            begun.complete(Unit)
            awaitCancellation()
        }
        of(own).useThenShutdown { transcripts ->
            val token = CancelToken()
            val call = async { runCatching { transcripts.get(LINK, call = CallOptions(cancel = token)) } }
            begun.await()
            token.cancel()
            failing(FailureKind.CANCELLED) { call.await().getOrThrow() }
        }
    }

    @Test
    fun `progress comes as a flow`() = check {
        val own = supplier("mine") { ask ->
            for (done in 1L..3L) ask.watcher.stage("reading", done, 3)
            listOf(words(ask, "done"))
        }
        of(own).useThenShutdown { transcripts ->
            val told = transcripts.progress(LINK).toList()
            assertEquals("done", assertIs<Progress.Done>(told.last()).transcript.segments.single().text)
            val stages = told.dropLast(1).map { assertIs<Progress.Underway>(it).stage }
            assertEquals(listOf(1L, 2L, 3L), stages.filter { it.name == "reading" }.map { it.done })
            assertEquals(setOf("mine"), stages.map { it.supplier }.toSet())
        }
    }

    @Test
    fun `a listener that throws or hangs changes nothing`() = check {
        val own = supplier("mine") { ask ->
            repeat(1_000) { ask.watcher.stage("reading", it.toLong(), 1_000) }
            listOf(words(ask, "done"))
        }
        val listeners = listOf<suspend () -> Unit>({ throw IllegalStateException("deaf") }, { awaitCancellation() })
        for (listener in listeners) of(own).useThenShutdown { transcripts ->
            val deaf = object : ProgressListener {
                override suspend fun onStage(stage: Stage) = listener()

                override suspend fun onAnswer(answer: Answer) = listener()
            }
            assertEquals("done", transcripts.get(LINK, listener = deaf).segments.single().text)
            assertEquals(1, transcripts.getMany(listOf(LINK), listener = deaf).size)
        }
    }

    @Test
    fun `the platform's own HTTP may be the way`() = check {
        val server = HttpServer.create(InetSocketAddress("127.0.0.1", 0), 0)
        server.createContext("/captions") { exchange ->
            val body = SRT.toByteArray()
            exchange.sendResponseHeaders(200, body.size.toLong())
            exchange.responseBody.use { it.write(body) }
        }
        server.start()
        try {
            val http = HttpClient.newHttpClient()
            val own = supplier("over-java") { ask ->
                val request = HttpRequest.newBuilder(URI("http://127.0.0.1:${server.address.port}/captions?v=${ask.videoId}"))
                val answer = http.send(request.build(), HttpResponse.BodyHandlers.ofByteArray())
                listOf(words(ask).copy(segments = parseCaptions(answer.body())))
            }
            of(own).useThenShutdown { assertEquals("The café is closed.", it.get(LINK).segments[1].text) }
        } finally {
            server.stop(0)
        }
    }
}
