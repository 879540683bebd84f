package dev.verbatim

import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.awaitCancellation

/** The service within the process: both surfaces, without a server. */
class ServiceTest {
    private val own = supplier("mine") { listOf(words(it, "Fresh words.")) }

    @Test
    fun `look-ups with and without a key`() = check {
        val options = TranscriptsOptions(
            suppliers = listOf(own),
            ledger = memoryLedger(),
            directory = memoryDirectory(),
            baseUrl = "https://verbatim.example/",
            freePerMonth = 1u,
        )
        shelf(options).useThenShutdown { transcripts ->
            val stranger = transcripts.service()
            assertTrue(assertNotNull(stranger.lookUp(LINK).transcript).fromCache)
            val refused = stranger.lookUp("https://youtu.be/aaaaaaaaaaa")
            assertEquals("needs_verification", refused.reason)
            assertNull(refused.transcript)
            val link = "https://youtu.be/aaaaaaaaaaa"
            val tagged = stranger.lookUp(link, "mcp_other")
            assertEquals("https://verbatim.example/watch/video_site/aaaaaaaaaaa?src=mcp_other", tagged.watchUrl)
            failing(FailureKind.INVALID_INPUT) { stranger.lookUp(link, "nobody") }
            failing(FailureKind.INVALID_INPUT) { stranger.lookUp("no link") }
            failing(FailureKind.UNAUTHORIZED) { stranger.keyStatus() }

            val created = stranger.createKey(NewKeyRequest(label = "a phone"))
            assertTrue(created.key.startsWith("vbk_"))
            stranger.useKey(created.key)
            assertEquals("a phone", stranger.keyStatus().label)
            assertEquals("Fresh words.", stranger.lookUp(link).transcript?.segments?.single()?.text)
            val spent = stranger.lookUp("https://youtu.be/bbbbbbbbbbb")
            assertEquals("key_allowance", spent.reason)
            assertEquals(Allowance("free", "month", 1, 1, 0), spent.key)
            assertContains(assertNotNull(stranger.lookUpText(link, Format.SRT).text), "Fresh words.")
            val none = stranger.lookUpText("https://youtu.be/bbbbbbbbbbb", Format.TEXT)
            assertTrue(none.text == null && none.isAllowanceSpent && none.sentence != null && none.watchUrl != null)
            failing(FailureKind.INVALID_INPUT) { stranger.createKey(NewKeyRequest(label = "x".repeat(10_000))) }
        }
    }

    @Test
    fun `an account, its credits, a transcript and a question`() = check {
        val mail = CompletableDeferred<Mail>()
        val mailer = object : Mailer {
            override suspend fun send(mail: Mail) {
                mail(mail)
            }

            private fun mail(sent: Mail) = mail.complete(sent)
        }
        val model = object : ChatModel {
            override suspend fun complete(messages: List<ChatMessage>, tokensMax: UInt): String {
                assertEquals("system", messages.first().role)
                return "They say \"Fresh words.\" [s1]"
            }
        }
        val options = TranscriptsOptions(suppliers = listOf(own), mailer = mailer, chatModel = model)
        Transcripts(options).useThenShutdown { transcripts ->
            val caller = transcripts.service()
            caller.register("ann@example.org")
            val token = assertNotNull(Regex("token=([0-9a-f]{64})").find(mail.await().text)).groupValues[1]
            val verified = caller.verify(token)
            assertTrue(verified.key.startsWith("vba_"))
            failing(FailureKind.REFUSED) { caller.verify(token, confirmed = true) }
            failing(FailureKind.UNAUTHORIZED) { caller.me() }
            caller.useKey(verified.key)
            val credits = transcripts.grant("ann@example.org", 5u, "first")
            assertEquals(credits, transcripts.grant("ann@example.org", 5u, "first"))
            assertEquals(credits, caller.me().creditsRemaining)
            val link = "https://youtu.be/aaaaaaaaaaa"
            val bought = caller.transcript(link, idempotencyKey = "once")
            assertEquals("Fresh words.", bought.transcript.segments.single().text)
            assertEquals(credits - 1, bought.creditsRemaining)
            assertTrue(caller.transcript(link, idempotencyKey = "once").isReplayed)
            val answer = caller.chat("aaaaaaaaaaa", "What do they say?", listOf(ChatTurn(Role.USER, "Hello")))
            assertContains(answer.response, "Fresh words")
            assertEquals(credits - 2, answer.creditsRemaining)
            val rotated = caller.rotateKey()
            failing(FailureKind.UNAUTHORIZED) { caller.me() }
            caller.useKey(rotated)
            assertEquals(credits - 2, caller.me().creditsRemaining)
            failing(FailureKind.UNSUPPORTED) { caller.subscribe("pro") }
            failing(FailureKind.UNSUPPORTED) { caller.buyCredits("small") }
            caller.close()
        }
    }

    @Test
    fun `a model that fails, lies or hangs`() = check {
        val models = listOf<suspend () -> String>(
            { throw failed(FailureKind.UNAVAILABLE, "no model today") },
            { throw IllegalStateException("a bug") },
            { "They say \"words that nobody said\" [s99]" },
            { "" },
        )
        for (code in models) {
            val model = object : ChatModel {
                override suspend fun complete(messages: List<ChatMessage>, tokensMax: UInt): String = code()
            }
            shelf(TranscriptsOptions(suppliers = emptyList(), chatModel = model)).useThenShutdown { transcripts ->
                val outcome = runCatching { transcripts.ask(LINK, "What is closed?").response }
                outcome.onSuccess { assertTrue("nobody said" !in it, it) }
                outcome.onFailure { assertTrue(it is VerbatimException, "$it") }
            }
        }
        val hanging = object : ChatModel {
            override suspend fun complete(messages: List<ChatMessage>, tokensMax: UInt): String = awaitCancellation()
        }
        shelf(TranscriptsOptions(suppliers = emptyList(), chatModel = hanging)).useThenShutdown { transcripts ->
            val call = CallOptions(timeout = java.time.Duration.ofMillis(100))
            failing(FailureKind.TIMED_OUT) { transcripts.ask(LINK, "What is closed?", call = call) }
        }
    }
}
