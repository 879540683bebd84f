package dev.verbatim

import com.sun.net.httpserver.HttpServer
import java.io.File
import java.net.InetSocketAddress
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executors
import java.util.concurrent.atomic.AtomicBoolean
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertNotNull
import kotlin.test.assertTrue
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.BeforeAll
import org.junit.jupiter.api.TestInstance

/** A well-formed key of an account. */
private const val ACCOUNT_KEY = "vba_0000000000000000000000000000003Xujou"

/** Client of the built server, and that server as a supplier. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ClientTest {
    private val data = temporaryFolder().toFile()
    private lateinit var replay: Replay
    private lateinit var server: RunningProgram
    private lateinit var address: String

    private fun settings() = mapOf(
        "VERBATIM_LOG__LEVEL" to "warn",
        "VERBATIM_UPSTREAM__PROXY" to replay.proxy,
        "VERBATIM_UPSTREAM__CA_FILE" to replay.caFile,
    )

    private fun command(vararg arguments: String) {
        val program = File(PROGRAMS, "verbatim").path
        RunningProgram(program, *arguments, "--data", data.path, settings = settings()).use { running ->
            generateSequence { runCatching { running.line() }.getOrNull() }.forEach(::println)
        }
    }

    @BeforeAll
    fun start() {
        replay = Replay()
        val captions = File(data, "quiet.srt").apply { writeText(SRT) }
        command("import", captions.path, "--video", LINK, "--lang", "en")
        val program = File(PROGRAMS, "verbatim").path
        server = RunningProgram(program, "serve", "--data", data.path, "--listen", "127.0.0.1:0", settings = settings())
        address = server.line().substringAfter("listening on ").trim()
    }

    @AfterAll
    fun stop() {
        server.close()
        replay.close()
    }

    private fun token(): String {
        val deadline = System.nanoTime() + 60_000_000_000L
        while (System.nanoTime() < deadline) {
            val mails = File(data, "outbox").listFiles().orEmpty().filter { it.extension == "eml" }
            for (mail in mails) {
                val text = mail.readText().replace("=\r\n", "").replace("=\n", "").replace("=3D", "=")
                Regex("token=([0-9a-f]{64})").find(text)?.let { return it.groupValues[1] }
            }
            Thread.sleep(10)
        }
        error("no mail arrived")
    }

    @Test
    fun `client looks up transcripts of server`() = runTest {
        Client(ClientOptions(address)).use { client ->
            val found = assertNotNull(client.lookUp(LINK).transcript)
            assertEquals(listOf(1_500L, 61_000L), found.segments.map { it.startMs })
            assertContains(assertNotNull(client.lookUpText(LINK, TranscriptFormat.MARKDOWN).text), "café")
            assertEquals("en", client.lookUp(LINK, language = "en-GB").transcript?.language)
            assertEquals(null, client.lookUp(LINK, language = "de").transcript)
            val others = listOf("fr", "en")
            assertEquals("en", client.lookUp(LINK, language = "de", otherLanguages = others).transcript?.language)
            val text = client.lookUpText(LINK, TranscriptFormat.SRT, language = "de", otherLanguages = others).text
            assertContains(assertNotNull(text), "café")
            assertFailure(FailureKind.INVALID_INPUT) { client.lookUp(LINK, otherLanguages = List(16) { "en" }) }
            assertContains(assertNotNull(client.lookUpText(LINK, TranscriptFormat.SRT, language = "en").text), "café")
            assertFailure(FailureKind.INVALID_INPUT) { client.lookUp(LINK, language = "no tag") }
            val none = client.lookUp("https://youtu.be/vb-tracks-0")
            assertEquals("needs_verification", none.reason)
            assertContains(none.watchUrl, "/watch/video_site/vb-tracks-0")
            val created = client.createKey(CreateKeyRequest("kotlin"))
            client.useKey(created.key)
            assertEquals("en", client.lookUp("https://youtu.be/vb-tracks-0").transcript?.language)
            assertEquals(1L, client.keyStatus().usage.used)
            assertEquals(FailureKind.UNAUTHORIZED, assertFailure(FailureKind.UNAUTHORIZED) { client.me() }.kind)
            assertEquals(400.toUShort(), assertFailure(FailureKind.REFUSED) { client.lookUp("no link") }.status)
            val batch = Batch()
            val calls = List(100) { async { client.lookUp(LINK, batch = batch).transcript?.segments?.size } }
            assertEquals(setOf<Int?>(2), calls.awaitAll().toSet())
            val options = TranscriptsOptions(
                suppliers = listOf(builtIn("verbatim-service")),
                server = RemoteServer(address, created.key),
            )
            Transcripts(options).useAndShutdown { assertEquals(2, it.get(LINK).segments.size) }
        }
    }

    private fun collector(received: MutableList<BatchResult>) = object : ProgressListener {
        override suspend fun onStage(stage: Stage) = Unit

        override suspend fun onResult(result: BatchResult) {
            received += result
        }
    }

    @Test
    fun `client gets many in order of links`() = runTest {
        val received = CopyOnWriteArrayList<BatchResult>()
        Client(ClientOptions(address)).use { client ->
            val links = listOf(LINK, "no link", "https://youtu.be/vb-tracks-3", LINK)
            val results = client.getMany(links, concurrency = 2u, listener = collector(received))
            assertEquals(links, results.map { it.link })
            assertEquals(listOf(true, false, false, true), results.map { it.transcript != null })
            assertEquals(400.toUShort(), results[1].failure?.status)
            val missing = assertNotNull(results[2].failure)
            assertEquals(FailureKind.REFUSED to "needs_verification", missing.kind to missing.reason)
            assertEquals(Platform.YOU_TUBE to "vb-tracks-3", missing.platform to missing.videoId)
            assertContains(assertNotNull(missing.watchUrl), "/watch/video_site/vb-tracks-3")
            assertEquals(results.toSet(), received.toSet())
            assertEquals(links.sorted(), received.map { it.link }.sorted())
            assertTrue(client.getMany(emptyList()).isEmpty())
            assertFailure(FailureKind.INVALID_INPUT) { client.getMany(links, concurrency = 0u) }
            assertFailure(FailureKind.INVALID_INPUT) { client.getMany(links, "no tag") }
        }
    }

    @Test
    fun `call that waits goes on with new key`() = runTest {
        val keys = CopyOnWriteArrayList<String>()
        val busy = HttpServer.create(InetSocketAddress("127.0.0.1", 0), 0)
        busy.createContext("/") { exchange ->
            keys += exchange.requestHeaders.getFirst("Authorization").removePrefix("Bearer ")
            exchange.responseHeaders.add("Retry-After", "5")
            val body = """{"error":"No.","code":429}""".toByteArray()
            exchange.sendResponseHeaders(if (keys.size == 1) 429 else 404, body.size.toLong())
            exchange.responseBody.use { it.write(body) }
        }
        busy.start()
        try {
            val options = ClientOptions("http://127.0.0.1:${busy.address.port}", key = "vbk_old", retries = 0u)
            Client(options).use { client ->
                val results = async(Dispatchers.Default) { client.getMany(listOf(LINK)) }
                waitUntil { keys.size == 1 }
                client.useKey("vbk_new")
                assertEquals(FailureKind.SERVICE_NOT_FOUND, results.await().single().failure?.kind)
            }
        } finally {
            busy.stop(0)
        }
        assertEquals(listOf("vbk_old", "vbk_new"), keys.toList())
    }

    @Test
    fun `link listed twice is requested once`() = runTest {
        val keys = CopyOnWriteArrayList<String>()
        val running = HttpServer.create(InetSocketAddress("127.0.0.1", 0), 0)
        running.createContext("/") { exchange ->
            keys += exchange.requestHeaders.getFirst("Idempotency-Key")
            val body = """{"error":"No.","code":404}""".toByteArray()
            exchange.sendResponseHeaders(404, body.size.toLong())
            exchange.responseBody.use { it.write(body) }
        }
        running.start()
        try {
            val options = ClientOptions("http://127.0.0.1:${running.address.port}", key = ACCOUNT_KEY, retries = 0u)
            val links = listOf(LINK, "https://youtu.be/vb-tracks-0", LINK)
            Client(options).use { client ->
                for (idempotencyKey in listOf(null, "batch-1")) {
                    val results = client.getMany(links, idempotencyKey = idempotencyKey)
                    assertEquals(links, results.map { it.link })
                    assertEquals(setOf(FailureKind.SERVICE_NOT_FOUND), results.map { it.failure?.kind }.toSet())
                }
            }
        } finally {
            running.stop(0)
        }
        assertEquals(4, keys.size)
        assertEquals(4, keys.toSet().size)
    }

    @Test
    fun `links of call with timeout keep their results and API`() = runTest {
        val requests = CopyOnWriteArrayList<String>()
        val slow = HttpServer.create(InetSocketAddress("127.0.0.1", 0), 0)
        val threads = Executors.newCachedThreadPool()
        val (isKeyReplaced, isEnded) = List(2) { CountDownLatch(1) }
        val isFirst = AtomicBoolean(true)
        slow.executor = threads
        slow.createContext("/") { exchange ->
            requests += exchange.requestURI.path + " " + exchange.requestHeaders.getFirst("Authorization")
            (if (isFirst.getAndSet(false)) isEnded else isKeyReplaced).await()
            val body = """{"error":"No.","code":404}""".toByteArray()
            exchange.sendResponseHeaders(404, body.size.toLong())
            exchange.responseBody.use { it.write(body) }
        }
        slow.start()
        try {
            val options = ClientOptions("http://127.0.0.1:${slow.address.port}", key = "vbk_old", retries = 0u)
            val received = CopyOnWriteArrayList<BatchResult>()
            Client(options).use { client ->
                val call = CallOptions(timeout = java.time.Duration.ofSeconds(5))
                val results = async(Dispatchers.Default) {
                    val links = List(8) { "https://youtu.be/vb-tracks-$it" }
                    client.getMany(links, concurrency = 2u, call = call, listener = collector(received))
                }
                waitUntil { requests.size == 2 }
                client.useKey(ACCOUNT_KEY)
                isKeyReplaced.countDown()
                val kinds = results.await().map { assertNotNull(it.failure).kind }
                assertEquals(1, kinds.count { it == FailureKind.TIMED_OUT }, "$kinds")
                assertEquals(7, kinds.count { it == FailureKind.SERVICE_NOT_FOUND }, "$kinds")
                assertEquals(kinds.sorted(), received.map { assertNotNull(it.failure).kind }.sorted())
            }
        } finally {
            isKeyReplaced.countDown()
            isEnded.countDown()
            slow.stop(0)
            threads.shutdownNow()
        }
        assertEquals(setOf("/api/transcript Bearer vbk_old"), requests.toSet())
    }

    @Test
    fun `client registers account and buys from server`() = runTest {
        Client(ClientOptions(address)).use { client ->
            client.register("bob@example.org")
            val verified = client.verify(token())
            client.useKey(verified.key)
            val me = client.me()
            assertEquals("bob@example.org", me.email)
            val purchased = client.transcript(LINK, idempotencyKey = "first-purchase-1")
            assertEquals(me.creditsRemaining - 1, purchased.creditsRemaining)
            assertTrue(client.transcript(LINK, idempotencyKey = "first-purchase-1").isReplayed)
            assertContains(client.chat(LINK, "What is closed?").response, "closed")
            client.useKey(client.rotateKey())
            assertEquals(me.creditsRemaining - 2, client.me().creditsRemaining)
            val links = listOf("https://youtu.be/vb-french-0", "no link")
            repeat(2) {
                // The repeat of a batch, or of a part of it, is not charged again.
                val some = links.drop(it)
                val bought = client.getMany(
                    some + links[0], "ja", otherLanguages = listOf("fr"), idempotencyKey = "batch-1",
                )
                assertEquals(listOf("fr", null).drop(it) + "fr", bought.map { result -> result.transcript?.language })
                assertEquals(me.creditsRemaining - 3, client.me().creditsRemaining)
            }
            client.getMany(links + links, "fr")
            assertEquals(me.creditsRemaining - 4, client.me().creditsRemaining)
            assertFailure(FailureKind.INVALID_INPUT) { client.useKey("no key\n") }
        }
    }

    @Test
    fun `client of invalid or unreachable server fails`() = runTest {
        assertFailure(FailureKind.INVALID_INPUT) { Client(ClientOptions("ftp://nowhere")) }
        Client(ClientOptions("http://127.0.0.1:9", retries = 0u)).use {
            assertFailure(FailureKind.SERVER_UNREACHABLE) { it.lookUp(LINK) }
        }
        Client(ClientOptions(replay.proxy, retries = 0u)).use { client ->
            val outcome = runCatching { client.me() }.exceptionOrNull()
            assertTrue(outcome is VerbatimException, "$outcome")
        }
    }
}
