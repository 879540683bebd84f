package dev.verbatim

import kotlin.time.Duration
import kotlin.time.toJavaDuration
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.asFlow
import kotlinx.coroutines.flow.channelFlow
import kotlinx.coroutines.flow.emitAll
import kotlinx.coroutines.flow.flatMapMerge
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.withContext
import java.io.File
import java.nio.charset.CharacterCodingException

/** Opens an archive in SQLite files in a folder of the app, created if it does not exist. */
public fun openTranscripts(folder: File, options: TranscriptsOptions = TranscriptsOptions()): Transcripts =
    Transcripts(options.copy(storage = Storage.Folder(folder.absolutePath)))

/** Options of a call with a timeout, after which it fails as [FailureKind.TIMED_OUT]. */
public fun callTimeout(timeout: Duration): CallOptions = CallOptions(timeout = timeout.toJavaDuration())

/**
 * Returns the transcript of a video. The call fails as [FailureKind.TIMED_OUT] after [timeout].
 *
 * Cancelling the coroutine cancels the call.
 */
public suspend fun Transcripts.get(link: String, language: String? = null, timeout: Duration): Transcript =
    get(link, language, call = callTimeout(timeout))

/** Runs [block], then waits for running work and closes the transcripts, even after an exception. */
public suspend fun <T> Transcripts.useAndShutdown(block: suspend (Transcripts) -> T): T =
    use {
        try {
            block(it)
        } finally {
            withContext(NonCancellable) { it.shutdown() }
        }
    }

/** Imports the text of captions into the archive. */
public suspend fun Transcripts.importCaptions(
    link: String,
    captions: String,
    language: String? = null,
): ImportOutcome = importCaptions(ImportRequest(link, captions.toByteArray(), language))

/** Element of the flow that [updates] returns. */
public sealed interface TranscriptUpdate {
    /** The fetch reached a stage. */
    public data class Stage(public val stage: dev.verbatim.Stage) : TranscriptUpdate

    /** The transcript; the last element. */
    public data class Done(public val transcript: Transcript) : TranscriptUpdate
}

/**
 * Returns the progress of a fetch, then the transcript. The flow fails as [Transcripts.get] does.
 *
 * Cancelling the collector cancels the call.
 */
public fun Transcripts.updates(link: String, language: String? = null): Flow<TranscriptUpdate> = channelFlow {
    val listener = object : ProgressListener {
        override suspend fun onStage(stage: Stage) {
            trySend(TranscriptUpdate.Stage(stage))
        }

        override suspend fun onResult(result: BatchResult) = Unit
    }
    send(TranscriptUpdate.Done(get(link, language, listener)))
}

/**
 * Returns the results of any number of links when they are complete. A failure is a result.
 *
 * A link waits while the sources of its platform are paused: at most [maxWait] without a success in between. With
 * [translated], a machine translation is returned if a video has no other transcript in a language. [otherLanguages]
 * are tried in this order if it has none in [language].
 */
@OptIn(ExperimentalCoroutinesApi::class)
public fun Transcripts.getAll(
    links: Flow<String>,
    language: String? = null,
    concurrency: Int = 8,
    maxWait: Duration? = null,
    translated: Boolean = false,
    otherLanguages: List<String> = emptyList(),
): Flow<BatchResult> = flow {
    Batch(maxWait?.toJavaDuration()).use { batch ->
        val results = links.flatMapMerge(concurrency) { link ->
            flow {
                val result = try {
                    val transcript =
                        get(link, language, translated = translated, batch = batch, otherLanguages = otherLanguages)
                    BatchResult(link, transcript, null)
                } catch (error: VerbatimException) {
                    BatchResult(link, null, error.failure)
                } catch (error: CharacterCodingException) {
                    BatchResult(link, null, Failure(FailureKind.INVALID_INPUT, "The link is not valid Unicode."))
                }
                emit(result)
            }
        }
        emitAll(results)
    }
}

/** Returns the results of several links as the other [getAll] does. */
public fun Transcripts.getAll(
    links: Iterable<String>,
    language: String? = null,
    concurrency: Int = 8,
    maxWait: Duration? = null,
    translated: Boolean = false,
    otherLanguages: List<String> = emptyList(),
): Flow<BatchResult> = getAll(links.asFlow(), language, concurrency, maxWait, translated, otherLanguages)

/**
 * Returns the archived transcripts, ordered by video; it fetches nothing. Each page is read when the collector needs it.
 *
 * The flow fails as [Transcripts.archivedPage] does.
 */
public fun Transcripts.archived(): Flow<Transcript> = flow {
    var cursor: String? = null
    do {
        val page = archivedPage(cursor)
        for (transcript in page.transcripts) emit(transcript)
        cursor = page.next
    } while (cursor != null)
}

/** A supplier of the app, from a function that returns transcripts or throws [supplyError]. */
public fun customSupplier(
    name: String,
    platforms: List<Platform> = emptyList(),
    kind: SupplierKind = SupplierKind.CAPTIONS,
    supply: suspend (SupplyRequest) -> List<Transcript>,
): SupplierSpec = SupplierSpec.Custom(
    name,
    platforms,
    kind,
    FunctionSupplier(supply),
)

/** A built-in supplier. */
public fun builtIn(name: String): SupplierSpec = SupplierSpec.BuiltIn(name)

private class FunctionSupplier(private val function: suspend (SupplyRequest) -> List<Transcript>) : Supplier {
    override suspend fun supply(request: SupplyRequest): List<Transcript> = function(request)
}
