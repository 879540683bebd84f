package dev.verbatim

import java.io.File
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertNotNull
import kotlin.test.assertTrue
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.BeforeAll
import org.junit.jupiter.api.TestInstance

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
