package dev.verbatim

import java.io.File
import java.nio.file.Files
import java.nio.file.Path
import java.util.concurrent.TimeUnit
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout

internal const val LINK = "https://youtu.be/dQw4w9WgXcQ"

internal const val SRT =
    "1\n00:00:01,500 --> 00:00:03,000\nIt is so quiet here.\n\n2\n00:01:01,000 --> 00:01:04,000\nThe café is closed.\n"

/** Where the built programs are. */
internal val PROGRAMS: File = File(System.getProperty("verbatim.programs"))

/** The root of the tree. */
internal val ROOT: File = File(System.getProperty("verbatim.root"))

/** A test that may not hang for ever. */
internal fun check(work: suspend CoroutineScope.() -> Unit) = runBlocking { withTimeout(120.seconds, work) }

/** Fails unless the work fails in this way. */
internal suspend fun failing(kind: FailureKind, work: suspend () -> Any?): Failure {
    val error = assertFailsWith<VerbatimException> { work() }
    val failure = error.failure
    assertEquals(failure.sentence, error.message)
    assertEquals(kind, failure.kind, failure.sentence)
    return failure
}

/** Waits until something is true; the test's own time is its end. */
internal suspend fun until(isTrue: () -> Boolean) {
    while (!isTrue()) delay(5)
}

/** Nobody is asked; one transcript is there. */
internal suspend fun shelf(options: TranscriptsOptions = TranscriptsOptions(suppliers = emptyList())): Transcripts =
    Transcripts(options).also { it.importCaptions(LINK, SRT, "en") }

internal fun folder(): Path = Files.createTempDirectory("verbatim-kotlin")

/** A transcript as a supplier makes it. */
internal fun words(ask: SupplierAsk, vararg texts: String): Transcript = Transcript(
    ask.platform,
    ask.videoId,
    ask.language ?: "en",
    TrackKind.HUMAN,
    texts.mapIndexed { place, text -> Segment(text, place * 1_000L, 900) },
)

/** A program of ours that runs beside a test. */
internal class Running(vararg command: String, settings: Map<String, String> = emptyMap()) : AutoCloseable {
    private val process: Process = ProcessBuilder(*command)
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .apply {
            environment().keys.removeIf { it.startsWith("VERBATIM_") }
            environment().putAll(settings)
        }
        .start()
    private val output = process.inputStream.bufferedReader()

    fun line(): String = output.readLine() ?: error("the program ended with ${process.waitFor()}")

    override fun close() {
        process.destroy()
        if (!process.waitFor(30, TimeUnit.SECONDS)) {
            process.destroyForcibly()
            error("the program did not end")
        }
    }
}

/** Recorded answers of YouTube. */
internal class Replay : AutoCloseable {
    private val running =
        Running(File(PROGRAMS, "replay").path, "--recordings", File(ROOT, "tests/recordings/youtube").path)
    private val said = List(2) { running.line().split(" ", limit = 2) }.associate { (name, value) -> name to value }
    val proxy: String = said.getValue("proxy")
    val caFile: String = said.getValue("ca")

    fun options() = TranscriptsOptions(proxies = listOf(proxy), caFile = caFile)

    override fun close() = running.close()
}
