package dev.verbatim

import kotlin.test.Test
import kotlin.test.assertEquals
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch

/** The library releases all objects, waiting calls and callbacks of the app. */
class LeakTest {
    /** Numbers of handles in the generated code. */
    private fun handleCounts(): List<Int> = listOf(
        FfiConverterTypeSupplier.handleMap.size,
        FfiConverterTypeArchiveStore.handleMap.size,
        FfiConverterTypeChatModel.handleMap.size,
        FfiConverterTypeProgressListener.handleMap.size,
        uniffiContinuationHandleMap.size,
        uniffiForeignFutureHandleCount(),
    )

    @Test
    fun `handles are released after shutdown`() = runTest {
        val before = handleCounts()
        val custom = customSupplier("mine") { request ->
            if (request.videoId.startsWith("h")) awaitCancellation()
            request.monitor.reportProgress("reading", 1, 1)
            listOf(transcriptOf(request, "one"))
        }
        val model = object : ChatModel {
            override suspend fun complete(messages: List<ChatMessage>, tokensMax: UInt): String = "It says \"one\" [s1]"
        }
        repeat(20) { round ->
            val options = TranscriptsOptions(suppliers = listOf(custom), archive = KotlinArchive(), chatModel = model)
            Transcripts(options).useAndShutdown { transcripts ->
                transcripts.updates("aaaaaaaaaaa").toList()
                transcripts.updates("bbbbbbbbbbb").take(1).toList()
                transcripts.getAll(List(20) { "%011d".format(it) }).toList()
                transcripts.ask("aaaaaaaaaaa", "What does it say?")
                runCatching { transcripts.get("no link") }
                val hanging = launch(Dispatchers.Default) { transcripts.get("hhhhhhhhhhh") }
                delay(round.toLong())
                hanging.cancelAndJoin()
            }
        }
        // The last handles are released when the library drops its side.
        waitUntil { handleCounts().zip(before).all { (now, then) -> now <= then } }
        assertEquals(before.size, handleCounts().size)
    }
}
