import dev.verbatim.ImportRequest
import dev.verbatim.Transcripts
import dev.verbatim.TranscriptsOptions
import dev.verbatim.useThenShutdown
import dev.verbatim.version
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json

private const val SHORT = "https://youtu.be/aaaaaaaaaaa"
private const val LONG = "https://youtu.be/bbbbbbbbbbb"
private const val SEGMENTS = 2_000
private const val ROUNDS = 15

@Serializable
private data class Piece(val text: String, val start: Double, val duration: Double)

private class Contender(val name: String, val calls: Int, val work: suspend (Int) -> Any?) {
    val micros = mutableListOf<Double>()
}

/** What is read must be used, or it is not read at all. */
private var used = 0L

/** What a call costs, and a long transcript as records and as JSON; all of them take turns in each round. */
fun main() = runBlocking {
    val options = TranscriptsOptions(suppliers = emptyList())
    Transcripts(options).useThenShutdown { transcripts ->
        for ((link, segments) in listOf(SHORT to 2, LONG to SEGMENTS)) {
            transcripts.importCaptions(ImportRequest(link, captions(segments).toByteArray(), "en"))
        }
        val contenders = listOf(
            Contender("a plain call", 5_000) { repeat(it) { used += version().length } },
            Contender("an async call: how much there is", 2_000) { repeat(it) { used += transcripts.size().videos } },
            Contender("an archived transcript of 2 segments", 2_000) { calls ->
                repeat(calls) { used += transcripts.get(SHORT).segments.size }
            },
            Contender("the same, 100 at once", 2_000) { calls ->
                repeat(calls / 100) { List(100) { async { transcripts.get(SHORT) } }.awaitAll() }
            },
            Contender("2,000 segments as records, all read", 100) { calls ->
                repeat(calls) { for (s in transcripts.get(LONG).segments) used += s.text.length + s.startMs + s.durationMs }
            },
            Contender("2,000 segments as JSON, all read", 100) { calls ->
                repeat(calls) {
                    val pieces = Json.decodeFromString<List<Piece>>(transcripts.getJson(LONG))
                    for (piece in pieces) used += piece.text.length + piece.start.toLong() + piece.duration.toLong()
                }
            },
            Contender("2,000 segments as JSON, not read", 100) { calls ->
                repeat(calls) { used += transcripts.getJson(LONG).length }
            },
        )
        repeat(3) { for (contender in contenders) contender.work(contender.calls) }
        repeat(ROUNDS) { round ->
            for (contender in if (round % 2 == 0) contenders else contenders.reversed()) {
                val begun = System.nanoTime()
                contender.work(contender.calls)
                contender.micros += (System.nanoTime() - begun) / 1_000.0 / contender.calls
            }
        }
        println("| | median, µs | best | worst |\n|---|---|---|---|")
        for (contender in contenders) {
            val sorted = contender.micros.sorted()
            println("| %s | %.1f | %.1f | %.1f |".format(contender.name, sorted[ROUNDS / 2], sorted.first(), sorted.last()))
        }
        val (records, json) = listOf(4, 5).map { contenders[it].micros }
        val ratios = records.zip(json) { record, other -> other / record }.sorted()
        println("JSON takes %.2f times as long as records (%.2f to %.2f)".format(ratios[ROUNDS / 2], ratios.first(), ratios.last()))
        check(used > 0)
    }
}

private fun captions(segments: Int): String = buildString {
    repeat(segments) { place ->
        val start = place * 2
        val clock = "%02d:%02d:%02d".format(start / 3_600, start / 60 % 60, start % 60)
        append("${place + 1}\n$clock,000 --> $clock,900\nThe café at number $place is open, and somebody says so.\n\n")
    }
}
