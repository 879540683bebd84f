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

/** Nothing of what was handed over stays behind: no object of the app's, no waiting call, no call of the app's code. */
class LeakTest {
    /** What the generated code holds for the library, as it counts it. */
    private fun held(): List<Int> = listOf(
        FfiConverterTypeSupplier.handleMap.size,
        FfiConverterTypeArchiveStore.handleMap.size,
        FfiConverterTypeChatModel.handleMap.size,
        FfiConverterTypeProgressListener.handleMap.size,
        uniffiContinuationHandleMap.size,
        uniffiForeignFutureHandleCount(),
    )

    @Test
    fun `no handle is left`() = check {
        val before = held()
        val own = supplier("mine") { ask ->
            if (ask.videoId.startsWith("h")) awaitCancellation()
            ask.watcher.stage("reading", 1, 1)
            listOf(words(ask, "one"))
        }
        val model = object : ChatModel {
            override suspend fun complete(messages: List<ChatMessage>, tokensMax: UInt): String = "It says \"one\" [s1]"
        }
        repeat(20) { round ->
            val options = TranscriptsOptions(suppliers = listOf(own), archive = OwnArchive(), chatModel = model)
            Transcripts(options).useThenShutdown { transcripts ->
                transcripts.progress("aaaaaaaaaaa").toList()
                transcripts.progress("bbbbbbbbbbb").take(1).toList()
                transcripts.answers(List(20) { "%011d".format(it) }).toList()
                transcripts.ask("aaaaaaaaaaa", "What does it say?")
                runCatching { transcripts.get("no link") }
                val hanging = launch(Dispatchers.Default) { transcripts.get("hhhhhhhhhhh") }
                delay(round.toLong())
                hanging.cancelAndJoin()
            }
        }
        // The last of them go once the library lets go of its own end.
        until { held().zip(before).all { (now, then) -> now <= then } }
        assertEquals(before.size, held().size)
    }
}
