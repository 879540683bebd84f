package dev.verbatim

import java.io.File
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.delay
import kotlinx.coroutines.withTimeout

/** The service in the process: lookup API and v1 API, without a server. */
class ServiceTest {
    private val custom = customSupplier("mine") { listOf(transcriptOf(it, "Fresh words.")) }

    @Test
    fun `local service looks up with and without key`() = runTest {
        val options = TranscriptsOptions(
            suppliers = listOf(custom),
            ledger = memoryLedger(),
            directory = memoryDirectory(),
            baseUrl = "https://verbatim.example/",
            freePerMonth = 1u,
        )
        archiveWithTranscript(options).useAndShutdown { transcripts ->
            val client = transcripts.service()
            assertTrue(assertNotNull(client.lookUp(LINK).transcript).fromCache)
            val rejected = client.lookUp("https://youtu.be/aaaaaaaaaaa")
            assertEquals("needs_verification", rejected.reason)
            assertNull(rejected.transcript)
            val link = "https://youtu.be/aaaaaaaaaaa"
            val tagged = client.lookUp(link, "mcp_other")
            assertEquals("https://verbatim.example/watch/video_site/aaaaaaaaaaa?src=mcp_other", tagged.watchUrl)
            assertFailure(FailureKind.INVALID_INPUT) { client.lookUp(link, "unknown") }
            assertFailure(FailureKind.INVALID_INPUT) { client.lookUp("no link") }
            assertFailure(FailureKind.UNAUTHORIZED) { client.keyStatus() }

            val created = client.createKey(CreateKeyRequest(label = "a phone"))
            assertTrue(created.key.startsWith("vbk_"))
            client.useKey(created.key)
            assertEquals("a phone", client.keyStatus().label)
            assertEquals("Fresh words.", client.lookUp(link).transcript?.segments?.single()?.text)
            val spent = client.lookUp("https://youtu.be/bbbbbbbbbbb")
            assertEquals("key_allowance", spent.reason)
            assertEquals(KeyUsage("free", "month", 1, 1, 0), spent.key)
            assertContains(assertNotNull(client.lookUpText(link, TranscriptFormat.SRT).text), "Fresh words.")
            val none = client.lookUpText("https://youtu.be/bbbbbbbbbbb", TranscriptFormat.TEXT)
            assertTrue(none.text == null && none.isAllowanceSpent && none.message != null && none.watchUrl != null)
            assertEquals("key_allowance", none.reason)
            assertFailure(FailureKind.INVALID_INPUT) { client.createKey(CreateKeyRequest(label = "x".repeat(10_000))) }
        }
    }

    @Test
    fun `watch url begins with base url`() = runTest {
        for ((baseUrl, watchUrl) in listOf(
            "" to "",
            "HTTPS://v.example" to "HTTPS://v.example/watch/video_site/aaaaaaaaaaa",
            "https://v.example/@ann/" to "https://v.example/@ann/watch/video_site/aaaaaaaaaaa",
        )) {
            val options = TranscriptsOptions(suppliers = emptyList(), baseUrl = baseUrl)
            Transcripts(options).useAndShutdown { transcripts ->
                assertEquals(watchUrl, transcripts.service().lookUp("https://youtu.be/aaaaaaaaaaa").watchUrl)
            }
        }
    }

    @Test
    fun `local account spends credits on transcript and answer`() = runTest {
        val mailer = RecordingMailer()
        val model = object : ChatModel {
            override suspend fun complete(messages: List<ChatMessage>, tokensMax: UInt): String {
                assertEquals("system", messages.first().role)
                return "They say \"Fresh words.\" [s1]"
            }
        }
        val options = TranscriptsOptions(suppliers = listOf(custom), mailer = mailer, chatModel = model)
        Transcripts(options).useAndShutdown { transcripts ->
            val client = transcripts.service()
            client.register("ann@example.org")
            val token = mailer.token()
            val verified = client.verify(token)
            assertTrue(verified.key.startsWith("vba_"))
            assertFailure(FailureKind.REFUSED) { client.verify(token, confirmed = true) }
            assertFailure(FailureKind.UNAUTHORIZED) { client.me() }
            client.useKey(verified.key)
            val credits = transcripts.grant("ann@example.org", 5u, "first")
            assertEquals(credits, transcripts.grant("ann@example.org", 5u, "first"))
            assertFailure(FailureKind.INVALID_INPUT) { transcripts.grant("ann@example.org", 5u, "") }
            assertEquals(credits, client.me().creditsRemaining)
            val link = "https://youtu.be/aaaaaaaaaaa"
            val purchased = client.transcript(link, idempotencyKey = "once")
            assertEquals("Fresh words.", purchased.transcript.segments.single().text)
            assertEquals(credits - 1, purchased.creditsRemaining)
            assertTrue(client.transcript(link, idempotencyKey = "once").isReplayed)
            val answer = client.chat("aaaaaaaaaaa", "What do they say?", listOf(ChatTurn(ChatRole.USER, "Hello")))
            assertContains(answer.response, "Fresh words")
            assertEquals(credits - 2, answer.creditsRemaining)
            val rotated = client.rotateKey()
            assertFailure(FailureKind.UNAUTHORIZED) { client.me() }
            client.useKey(rotated)
            assertEquals(credits - 2, client.me().creditsRemaining)
            assertFailure(FailureKind.UNSUPPORTED) { client.subscribe("pro") }
            assertFailure(FailureKind.UNSUPPORTED) { client.buyCredits("small") }
            client.close()
        }
    }

    @Test
    fun `account beside archive file survives pause`() = runTest {
        val mailer = RecordingMailer()
        val file = File(temporaryFolder().toFile(), "transcripts.db").path
        val storage = Storage.ArchiveFile(file)
        val options = TranscriptsOptions(storage = storage, suppliers = listOf(custom), mailer = mailer)
        Transcripts(options).useAndShutdown { transcripts ->
            val client = mailer.register(transcripts)
            val credits = client.me().creditsRemaining
            transcripts.pause()
            assertEquals(credits, client.me().creditsRemaining)
        }
    }

    @Test
    fun `pause waits for mail and for answer in progress`() = runTest {
        val mailer = RecordingMailer(500.milliseconds)
        val started = CompletableDeferred<Unit>()
        val model = object : ChatModel {
            override suspend fun complete(messages: List<ChatMessage>, tokensMax: UInt): String {
                started.complete(Unit)
                delay(500)
                return "They say \"Fresh words.\" [s1]"
            }
        }
        val storage = Storage.Folder(temporaryFolder().toString())
        val suppliers = listOf(custom)
        val options = TranscriptsOptions(storage = storage, suppliers = suppliers, mailer = mailer, chatModel = model)
        Transcripts(options).useAndShutdown { transcripts ->
            transcripts.service().register("bob@example.org")
            mailer.started.await()
            transcripts.pause()
            assertTrue(mailer.sent.isCompleted)
        }
        val next = RecordingMailer()
        Transcripts(options.copy(mailer = next)).useAndShutdown { transcripts ->
            val client = next.register(transcripts)
            val credits = client.me().creditsRemaining
            val answer = async(Dispatchers.Default) { client.chat("aaaaaaaaaaa", "What do they say?") }
            started.await()
            transcripts.pause()
            assertEquals(credits - 1, answer.await().creditsRemaining)
        }
    }

    @Test
    fun `shutdown ends hanging mailer`() = runTest {
        val started = CompletableDeferred<Unit>()
        val hanging = object : Mailer {
            override suspend fun send(mail: MailMessage) {
                started.complete(Unit)
                awaitCancellation()
            }
        }
        Transcripts(TranscriptsOptions(suppliers = emptyList(), mailer = hanging)).use { transcripts ->
            transcripts.service().register("ann@example.org")
            started.await()
            withTimeout(20.seconds) { transcripts.shutdown() }
        }
    }

    @Test
    fun `embedding model of the app finds what means the same`() = runTest {
        val purposes = mutableSetOf<EmbedPurpose>()
        val topics = object : EmbeddingModel {
            override fun model(): String = "topics-1"

            override suspend fun embed(texts: List<String>, purpose: EmbedPurpose): List<List<Float>> {
                purposes += purpose
                return texts.map { if ("café" in it || "espresso" in it) listOf(1f, 0f) else listOf(0f, 1f) }
            }
        }
        val options = TranscriptsOptions(suppliers = emptyList(), embeddingModel = topics)
        archiveWithTranscript(options).useAndShutdown { transcripts ->
            val answer = transcripts.ask(LINK, "Is the espresso closed?")
            assertContains(answer.response, "café")
            assertEquals(setOf(EmbedPurpose.QUESTION, EmbedPurpose.PASSAGE), purposes)
        }
        val missing = object : EmbeddingModel {
            override fun model(): String = throw IllegalStateException("no model file")

            override suspend fun embed(texts: List<String>, purpose: EmbedPurpose): List<List<Float>> = emptyList()
        }
        val failure = assertFailure(FailureKind.UNEXPECTED) { Transcripts(options.copy(embeddingModel = missing)) }
        assertTrue(failure.message.endsWith("IllegalStateException: no model file"), failure.message)
    }

    @Test
    fun `failing or wrong or hanging model affects only its call`() = runTest {
        val models = listOf<suspend () -> String>(
            { throw verbatimError(FailureKind.UNAVAILABLE, "no model today") },
            { throw IllegalStateException("a bug") },
            { "They say \"words never spoken\" [s99]" },
            { "" },
        )
        for (code in models) {
            val model = object : ChatModel {
                override suspend fun complete(messages: List<ChatMessage>, tokensMax: UInt): String = code()
            }
            val options = TranscriptsOptions(suppliers = emptyList(), chatModel = model)
            archiveWithTranscript(options).useAndShutdown { transcripts ->
                val outcome = runCatching { transcripts.ask(LINK, "What is closed?").response }
                outcome.onSuccess { assertTrue("never spoken" !in it, it) }
                outcome.onFailure { assertTrue(it is VerbatimException, "$it") }
            }
        }
        val hanging = object : ChatModel {
            override suspend fun complete(messages: List<ChatMessage>, tokensMax: UInt): String = awaitCancellation()
        }
        val options = TranscriptsOptions(suppliers = emptyList(), chatModel = hanging)
        archiveWithTranscript(options).useAndShutdown { transcripts ->
            val call = CallOptions(timeout = java.time.Duration.ofMillis(100))
            assertFailure(FailureKind.TIMED_OUT) { transcripts.ask(LINK, "What is closed?", call = call) }
        }
        val impatient = options.copy(chatTimeout = java.time.Duration.ofMillis(100))
        archiveWithTranscript(impatient).useAndShutdown { transcripts ->
            assertFailure(FailureKind.UNAVAILABLE) { transcripts.ask(LINK, "What is closed?") }
        }
        val never = options.copy(chatTimeout = java.time.Duration.ZERO)
        assertContains(assertFailure(FailureKind.INVALID_INPUT) { Transcripts(never) }.message, "chat_timeout")
    }
}

/** Passes the first mail to the test, after a pause. */
private class RecordingMailer(private val pause: Duration = Duration.ZERO) : Mailer {
    val started = CompletableDeferred<Unit>()
    val sent = CompletableDeferred<MailMessage>()

    override suspend fun send(mail: MailMessage) {
        started.complete(Unit)
        delay(pause)
        sent.complete(mail)
    }

    /** The token of the mail. */
    suspend fun token(): String =
        assertNotNull(Regex("token=([0-9a-f]{64})").find(sent.await().text)).groupValues[1]

    /** Client of a new account with credits. */
    suspend fun register(transcripts: Transcripts): Client {
        val client = transcripts.service()
        client.register("ann@example.org")
        client.useKey(client.verify(token()).key)
        transcripts.grant("ann@example.org", 5u, "first")
        return client
    }
}
