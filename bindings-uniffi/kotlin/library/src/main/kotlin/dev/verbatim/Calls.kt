package dev.verbatim

import kotlin.time.Duration
import kotlin.time.toJavaDuration
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.asFlow
import kotlinx.coroutines.flow.channelFlow
import kotlinx.coroutines.flow.flatMapMerge
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.withContext
import java.io.File

/** Transcripts that are kept in a folder of the app's, in SQLite files. The folder is made where it is not there. */
public fun transcriptsIn(folder: File, options: TranscriptsOptions = TranscriptsOptions()): Transcripts =
    Transcripts(options.copy(storage = Storage.Folder(folder.absolutePath)))

/** How long a call may take; then it fails as [FailureKind.TIMED_OUT]. */
public fun within(time: Duration): CallOptions = CallOptions(timeout = time.toJavaDuration())

/**
 * The transcript of a video, in at most this time; then it fails as [FailureKind.TIMED_OUT].
 *
 * Cancelling the coroutine ends the work at once, with or without a time.
 */
public suspend fun Transcripts.get(link: String, language: String? = null, timeout: Duration): Transcript =
    get(link, language, call = within(timeout))

/** Does work with these transcripts, then waits for what is under way and closes them, whatever happened. */
public suspend fun <T> Transcripts.useThenShutdown(work: suspend (Transcripts) -> T): T =
    use {
        try {
            work(it)
        } finally {
            withContext(NonCancellable) { it.shutdown() }
        }
    }

/** Takes captions of text into the archive. */
public suspend fun Transcripts.importCaptions(link: String, captions: String, language: String? = null): Imported =
    importCaptions(ImportRequest(link, captions.toByteArray(), language))

/** What a flow of progress tells. */
public sealed interface Progress {
    /** The fetch has come so far. */
    public data class Underway(public val stage: Stage) : Progress

    /** It is there; the last that is told. */
    public data class Done(public val transcript: Transcript) : Progress
}

/**
 * The transcript of a video as a flow: how far the fetch is, then the transcript. It fails as [Transcripts.get] does, and
 * cancelling the collector ends the work.
 */
public fun Transcripts.progress(link: String, language: String? = null): Flow<Progress> = channelFlow {
    val listener = object : ProgressListener {
        override suspend fun onStage(stage: Stage) {
            trySend(Progress.Underway(stage))
        }

        override suspend fun onAnswer(answer: Answer) = Unit
    }
    send(Progress.Done(get(link, language, listener)))
}

/** The answers of any number of links as they come, [atOnce] of them at the same time. What fails is an answer, too. */
@OptIn(ExperimentalCoroutinesApi::class)
public fun Transcripts.answers(links: Flow<String>, language: String? = null, atOnce: Int = 8): Flow<Answer> =
    links.flatMapMerge(atOnce) { link ->
        flow {
            val answer = try {
                Answer(link, get(link, language), null)
            } catch (error: VerbatimException) {
                Answer(link, null, error.failure)
            }
            emit(answer)
        }
    }

/** The answers of several links as they come. */
public fun Transcripts.answers(links: Iterable<String>, language: String? = null, atOnce: Int = 8): Flow<Answer> =
    answers(links.asFlow(), language, atOnce)

/** A supplier of the app's, as a function: it returns transcripts, or throws [noTranscript]. */
public fun supplier(
    name: String,
    platforms: List<Platform> = emptyList(),
    kind: SupplierKind = SupplierKind.CAPTIONS,
    supply: suspend (SupplierAsk) -> List<Transcript>,
): SupplierChoice = SupplierChoice.Own(
    name,
    platforms,
    kind,
    OneFunction(supply),
)

/** A supplier of the library's, by its name. */
public fun builtIn(name: String): SupplierChoice = SupplierChoice.BuiltIn(name)

private class OneFunction(private val function: suspend (SupplierAsk) -> List<Transcript>) : Supplier {
    override suspend fun supply(ask: SupplierAsk): List<Transcript> = function(ask)
}
