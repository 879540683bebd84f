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

/** Folder of the built programs. */
internal val PROGRAMS: File = File(System.getProperty("verbatim.programs"))

/** Root of the repository. */
internal val ROOT: File = File(System.getProperty("verbatim.root"))

/** Runs a test with a timeout. */
internal fun runTest(work: suspend CoroutineScope.() -> Unit) = runBlocking { withTimeout(120.seconds, work) }

/** Asserts that the work fails with this kind. */
internal suspend fun assertFailure(kind: FailureKind, work: suspend () -> Any?): Failure {
    val error = assertFailsWith<VerbatimException> { work() }
    val failure = error.failure
    assertEquals(failure.message, error.message)
    assertEquals(kind, failure.kind, failure.message)
    return failure
}

/** Waits for a condition, at most until the timeout of the test. */
internal suspend fun waitUntil(condition: () -> Boolean) {
    while (!condition()) delay(5)
}

/** Transcripts without suppliers, with one archived transcript. */
internal suspend fun archiveWithTranscript(
    options: TranscriptsOptions = TranscriptsOptions(suppliers = emptyList()),
): Transcripts = Transcripts(options).also { it.importCaptions(LINK, SRT, "en") }

internal fun temporaryFolder(): Path = Files.createTempDirectory("verbatim-kotlin")

/** The files of a folder, which has no symbolic link in its path, that this process has open. */
internal fun openFiles(folder: File): List<String> =
    File("/proc/self/fd").listFiles().orEmpty().map { it.canonicalPath }.filter { it.startsWith(folder.path) }

/** A transcript for a request to a supplier. */
internal fun transcriptOf(request: SupplyRequest, vararg texts: String): Transcript = Transcript(
    request.platform,
    request.videoId,
    request.language ?: "en",
    TrackKind.HUMAN,
    texts.mapIndexed { index, text -> Segment(text, index * 1_000L, 900) },
)

/** An exception that cannot be described. */
internal class ExceptionWithoutText : RuntimeException() {
    override val message: String
        get() = throw IllegalStateException("no message")
}

/** A program that runs during a test. */
internal class RunningProgram(vararg command: String, settings: Map<String, String> = emptyMap()) : AutoCloseable {
    private val process: Process = ProcessBuilder(*command)
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .apply {
            environment().keys.removeIf { it.startsWith("VERBATIM_") }
            environment().putAll(settings)
        }
        .start()
    private val output = process.inputStream.bufferedReader()

    fun line(): String = output.readLine() ?: error("the program exited with ${process.waitFor()}")

    override fun close() {
        process.destroy()
        if (!process.waitFor(30, TimeUnit.SECONDS)) {
            process.destroyForcibly()
            error("the program did not exit")
        }
    }
}

/** Proxy with recorded responses of YouTube. */
internal class Replay : AutoCloseable {
    private val program = RunningProgram(
        File(PROGRAMS, "replay").path,
        "--recordings",
        File(ROOT, "tests/recordings/youtube").path,
        "--recordings",
        File(ROOT, "tests/recordings/youtube-lists").path,
    )
    private val settings = List(2) { program.line().split(" ", limit = 2) }.associate { (name, value) -> name to value }
    val proxy: String = settings.getValue("proxy")
    val caFile: String = settings.getValue("ca")

    fun options() = TranscriptsOptions(proxies = listOf(proxy), caFile = caFile)

    override fun close() = program.close()
}
