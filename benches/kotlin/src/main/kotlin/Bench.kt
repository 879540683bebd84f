import dev.verbatim.ImportRequest
import dev.verbatim.Transcripts
import dev.verbatim.TranscriptsOptions
import dev.verbatim.useAndShutdown
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
private data class JsonSegment(val text: String, val start: Double, val duration: Double)

private class Candidate(val name: String, val calls: Int, val work: suspend (Int) -> Any?) {
    val micros = mutableListOf<Double>()
}

/** Uses what is read, so that the compiler cannot remove the reads. */
private var used = 0L

/** Measures calls, and a long transcript as records and as JSON. Each round measures all candidates. */
fun main() = runBlocking {
    val options = TranscriptsOptions(suppliers = emptyList())
    Transcripts(options).useAndShutdown { transcripts ->
        for ((link, segments) in listOf(SHORT to 2, LONG to SEGMENTS)) {
            transcripts.importCaptions(ImportRequest(link, captions(segments).toByteArray(), "en"))
        }
        val candidates = listOf(
            Candidate("a plain call", 5_000) { repeat(it) { used += version().length } },
            Candidate("an async call: totals of the archive", 2_000) { calls ->
                repeat(calls) { used += transcripts.stats().videos.toLong() }
            },
            Candidate("an archived transcript of 2 segments", 2_000) { calls ->
                repeat(calls) { used += transcripts.get(SHORT).segments.size }
            },
            Candidate("the same, 100 at once", 2_000) { calls ->
                repeat(calls / 100) { List(100) { async { transcripts.get(SHORT) } }.awaitAll() }
            },
            Candidate("2,000 segments as records, all read", 100) { calls ->
                repeat(calls) {
                    for (s in transcripts.get(LONG).segments) used += s.text.length + s.startMs + s.durationMs
                }
            },
            Candidate("2,000 segments as JSON, all read", 100) { calls ->
                repeat(calls) {
                    val segments = Json.decodeFromString<List<JsonSegment>>(transcripts.getJson(LONG))
                    for (s in segments) used += s.text.length + s.start.toLong() + s.duration.toLong()
                }
            },
            Candidate("2,000 segments as JSON, not read", 100) { calls ->
                repeat(calls) { used += transcripts.getJson(LONG).length }
            },
        )
        repeat(3) { for (candidate in candidates) candidate.work(candidate.calls) }
        repeat(ROUNDS) { round ->
            for (candidate in if (round % 2 == 0) candidates else candidates.reversed()) {
                val started = System.nanoTime()
                candidate.work(candidate.calls)
                candidate.micros += (System.nanoTime() - started) / 1_000.0 / candidate.calls
            }
        }
        println("| | median, µs | best | worst |\n|---|---|---|---|")
        for (candidate in candidates) {
            val sorted = candidate.micros.sorted()
            val median = sorted[ROUNDS / 2]
            println("| %s | %.1f | %.1f | %.1f |".format(candidate.name, median, sorted.first(), sorted.last()))
        }
        val (records, json) = listOf(4, 5).map { candidates[it].micros }
        val ratios = records.zip(json) { record, other -> other / record }.sorted()
        val summary = "JSON takes %.2f times as long as records (%.2f to %.2f)"
        println(summary.format(ratios[ROUNDS / 2], ratios.first(), ratios.last()))
        check(used > 0)
    }
}

private fun captions(segments: Int): String = buildString {
    repeat(segments) { index ->
        val start = index * 2
        val clock = "%02d:%02d:%02d".format(start / 3_600, start / 60 % 60, start % 60)
        append("${index + 1}\n$clock,000 --> $clock,900\nThe café at number $index is open, and the host says so.\n\n")
    }
}
