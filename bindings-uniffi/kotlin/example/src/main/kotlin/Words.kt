import dev.verbatim.Progress
import dev.verbatim.VerbatimException
import dev.verbatim.answers
import dev.verbatim.importCaptions
import dev.verbatim.progress
import dev.verbatim.sentence
import dev.verbatim.start
import dev.verbatim.text
import dev.verbatim.transcriptsIn
import dev.verbatim.useThenShutdown
import java.io.File
import kotlin.system.exitProcess
import kotlinx.coroutines.runBlocking

private const val USAGE = """words FOLDER get LINK              the words of a video, with their times
words FOLDER many LINK...          the first words of several
words FOLDER import LINK FILE      takes captions into the archive
words FOLDER search WORD...        where these words are said"""

/** A command-line program over an archive in a folder: what an app does, without its screens. */
fun main(arguments: Array<String>) {
    val folder = arguments.getOrNull(0) ?: return println(USAGE)
    val rest = arguments.drop(2)
    try {
        runBlocking {
            transcriptsIn(File(folder)).useThenShutdown { transcripts ->
                when (arguments.getOrNull(1)) {
                    "get" -> transcripts.progress(rest.single()).collect { progress ->
                        when (progress) {
                            is Progress.Underway -> System.err.println("${progress.stage.supplier}: ${progress.stage.name}")
                            is Progress.Done -> progress.transcript.segments.forEach { println("${it.start}\t${it.text}") }
                        }
                    }

                    "many" -> transcripts.answers(rest).collect { answer ->
                        println("${answer.link}\t${answer.transcript?.text()?.take(60) ?: answer.failure?.sentence}")
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
        System.err.println(error.sentence)
        exitProcess(1)
    }
}
