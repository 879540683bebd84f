import dev.verbatim.TranscriptUpdate
import dev.verbatim.VerbatimException
import dev.verbatim.getAll
import dev.verbatim.importCaptions
import dev.verbatim.openTranscripts
import dev.verbatim.start
import dev.verbatim.text
import dev.verbatim.updates
import dev.verbatim.useAndShutdown
import java.io.File
import kotlin.system.exitProcess
import kotlinx.coroutines.runBlocking

private const val USAGE = """example FOLDER get LINK              get the transcript of a video, with timestamps
example FOLDER many LINK...          get the beginnings of several transcripts
example FOLDER import LINK FILE      import captions into the archive
example FOLDER search WORD...        search the archived transcripts"""

/** A command-line program with an archive in a folder: the work of an app, without its screens. */
fun main(arguments: Array<String>) {
    val folder = arguments.getOrNull(0) ?: return println(USAGE)
    val rest = arguments.drop(2)
    try {
        runBlocking {
            openTranscripts(File(folder)).useAndShutdown { transcripts ->
                when (arguments.getOrNull(1)) {
                    "get" -> transcripts.updates(rest.single()).collect { update ->
                        when (update) {
                            is TranscriptUpdate.Stage ->
                                System.err.println("${update.stage.supplier}: ${update.stage.name}")
                            is TranscriptUpdate.Done ->
                                update.transcript.segments.forEach { println("${it.start}\t${it.text}") }
                        }
                    }

                    "many" -> transcripts.getAll(rest).collect { result ->
                        println("${result.link}\t${result.transcript?.text()?.take(60) ?: result.failure?.message}")
                    }

                    "import" -> {
                        val (link, file) = rest
                        println(transcripts.importCaptions(link, File(file).readText()).effect)
                    }

                    "search" -> transcripts.search(rest.joinToString(" ")).forEach { println("${it.url}\t${it.text}") }

                    else -> println(USAGE)
                }
            }
        }
    } catch (error: VerbatimException) {
        System.err.println(error.message)
        exitProcess(1)
    }
}
