package dev.verbatim

import java.time.Duration
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.TestFactory

/** The core's conformance suite for stores in Kotlin. */
class StoreTest {
    private fun suite(port: String, run: suspend (String) -> Unit): List<DynamicTest> {
        val cases = conformanceCases(port)
        assertTrue(cases.size >= 10, "$port has ${cases.size} cases")
        return cases.map { dynamicTest(it) { runTest { run(it) } } }
    }

    @TestFactory
    fun `archive in Kotlin conforms`() = suite("archive") { runArchiveCase(it, KotlinArchive()) }

    /** Each call passes through Kotlin, with all its arguments and results. */
    @TestFactory
    fun `ledger behind Kotlin conforms`() = suite("ledger") { runLedgerCase(it, DelegatingLedger(memoryLedger())) }

    @TestFactory
    fun `directory behind Kotlin conforms`() =
        suite("directory") { runDirectoryCase(it, DelegatingDirectory(memoryDirectory())) }

    @TestFactory
    fun `archive behind Kotlin conforms`() = suite("archive") { runArchiveCase(it, DelegatingArchive(memoryArchive())) }

    @Test
    fun `suite reports archive that finds nothing`() = runTest {
        val empty = object : ArchiveStore by KotlinArchive() {
            override suspend fun find(video: VideoId, selector: TrackSelector, now: Timestamp): FindOutcome =
                FindOutcome.NotFound
        }
        val broken = conformanceCases("archive").count { name ->
            runCatching { runArchiveCase(name, empty) }.exceptionOrNull() is VerbatimException
        }
        assertTrue(broken > 3, "only $broken cases failed")
        assertFailure(FailureKind.INVALID_INPUT) { runArchiveCase("no such case", KotlinArchive()) }
        assertFailure(FailureKind.INVALID_INPUT) { conformanceCases("no such port") }
    }

    @Test
    fun `transcripts use archive in Kotlin`() = runTest {
        val archive = KotlinArchive()
        repeat(2) {
            Transcripts(TranscriptsOptions(archive = archive, suppliers = emptyList())).useAndShutdown { transcripts ->
                transcripts.importCaptions(LINK, SRT, "en")
                assertEquals(2, transcripts.get(LINK).segments.size)
                assertEquals(61_000L, transcripts.search("closed").single().startMs)
            }
        }
        assertEquals(1uL, archive.stats().transcripts)
    }

    @Test
    fun `failing store fails only its call`() = runTest {
        val faults = listOf(
            code { throw verbatimError(FailureKind.UNAVAILABLE, "store offline") } to FailureKind.UNAVAILABLE,
            code { throw verbatimError(FailureKind.CORRUPT, "store damaged") } to FailureKind.CORRUPT,
            code { throw verbatimError(FailureKind.RATE_LIMITED, "store busy") } to FailureKind.UNAVAILABLE,
            code { throw verbatimError(FailureKind.NOT_CONFIGURED, "no store yet") } to FailureKind.UNAVAILABLE,
            code { throw IllegalStateException("a bug") } to FailureKind.UNEXPECTED,
            code { throw ExceptionWithoutText() } to FailureKind.UNEXPECTED,
            code { throw StackOverflowError() } to FailureKind.UNEXPECTED,
            code { awaitCancellation() } to FailureKind.UNAVAILABLE,
            code { stored(valid.copy(videoId = "no id at all")) } to FailureKind.CORRUPT,
            code { stored(valid.copy(platform = Platform.X, videoId = "20")) } to FailureKind.CORRUPT,
            code { stored(valid.copy(segments = emptyList())) } to FailureKind.CORRUPT,
            code { stored(valid.copy(segments = listOf(Segment("b", 9, 9)) + valid.segments)) } to FailureKind.CORRUPT,
            code { stored(valid, revision = 0u) } to FailureKind.CORRUPT,
            code { stored(valid, digestBytes = 3) } to FailureKind.CORRUPT,
        )
        for ((fault, kind) in faults) {
            val broken = object : ArchiveStore by KotlinArchive() {
                override suspend fun find(video: VideoId, selector: TrackSelector, now: Timestamp): FindOutcome =
                    fault()
            }
            val options =
                TranscriptsOptions(archive = broken, suppliers = emptyList(), storeTimeout = Duration.ofMillis(50))
            Transcripts(options).useAndShutdown { assertFailure(kind) { it.get(LINK) } }
        }
    }

    @Test
    fun `archive that stores another transcript fails as corrupt`() = runTest {
        val broken = object : ArchiveStore by KotlinArchive() {
            override suspend fun put(request: PutRequest): StoredTranscript =
                StoredTranscript(valid.copy(videoId = "jNQXAC9IVRw"), 1u, request.contentSha256, 1u, 0)
        }
        Transcripts(TranscriptsOptions(archive = broken, suppliers = emptyList())).useAndShutdown { transcripts ->
            assertFailure(FailureKind.CORRUPT) { transcripts.importCaptions(LINK, SRT, "en") }
        }
    }

    @Test
    fun `archive that repeats its cursor ends search`() = runTest {
        val broken = object : ArchiveStore by KotlinArchive() {
            override suspend fun listTracks(page: PageRequest): TrackPage = TrackPage(emptyList(), "same")
        }
        Transcripts(TranscriptsOptions(archive = broken, suppliers = emptyList())).useAndShutdown { transcripts ->
            assertFailure(FailureKind.CORRUPT) { withTimeout(20.seconds) { transcripts.search("word") } }
        }
    }

    @Test
    fun `store with invalid result fails only its call`() = runTest {
        val broken = object : ArchiveStore by KotlinArchive() {
            override suspend fun listTracks(page: PageRequest): TrackPage {
                val video = Video(Platform.INSTAGRAM, "\u0000 no id")
                return TrackPage(listOf(ArchivedTrack(video, track(), emptyList(), 1u, 0)), null)
            }
        }
        Transcripts(TranscriptsOptions(archive = broken, suppliers = emptyList())).useAndShutdown { transcripts ->
            val failure = assertFailure(FailureKind.UNEXPECTED) { transcripts.search("word") }
            assertContains(failure.message, "the app's own code")
        }
    }

    private fun code(find: suspend () -> FindOutcome) = find

    private fun track() = TrackInfo("en", TrackKind.HUMAN, null, false)

    private val valid = Transcript(
        Platform.YOU_TUBE,
        "dQw4w9WgXcQ",
        "en",
        TrackKind.HUMAN,
        listOf(Segment("Hello.", 0, 900)),
        source = "import",
    )

    private fun stored(transcript: Transcript, revision: UInt = 1u, digestBytes: Int = 32): FindOutcome =
        FindOutcome.Stored(StoredTranscript(transcript, revision, ByteArray(digestBytes), 1u, 0))
}

private class DelegatingArchive(private val inner: ArchiveStore) : ArchiveStore by inner

private class DelegatingLedger(private val inner: LedgerStore) : LedgerStore by inner

private class DelegatingDirectory(private val inner: DirectoryStore) : DirectoryStore by inner
