package dev.verbatim

import java.time.Duration
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertTrue
import kotlinx.coroutines.awaitCancellation
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.TestFactory

/** Stores written in Kotlin, held to the core's conformance suite. */
class StoreTest {
    private fun suite(port: String, run: suspend (String) -> Unit): List<DynamicTest> {
        val cases = conformanceCases(port)
        assertTrue(cases.size >= 10, "$port has ${cases.size} cases")
        return cases.map { dynamicTest(it) { check { run(it) } } }
    }

    @TestFactory
    fun `an archive in Kotlin`() = suite("archive") { runArchiveCase(it, OwnArchive()) }

    /** Every call goes into Kotlin and out again, with all that it takes and gives. */
    @TestFactory
    fun `a ledger behind Kotlin`() = suite("ledger") { runLedgerCase(it, PassedOnLedger(memoryLedger())) }

    @TestFactory
    fun `a directory behind Kotlin`() = suite("directory") { runDirectoryCase(it, PassedOnDirectory(memoryDirectory())) }

    @TestFactory
    fun `an archive behind Kotlin`() = suite("archive") { runArchiveCase(it, PassedOnArchive(memoryArchive())) }

    @Test
    fun `the suite catches an archive that forgets`() = check {
        val forgetful = object : ArchiveStore by OwnArchive() {
            override suspend fun find(video: VideoId, wish: Wish, now: Timestamp): ArchiveFind = ArchiveFind.Nothing
        }
        val broken = conformanceCases("archive").count { name ->
            runCatching { runArchiveCase(name, forgetful) }.exceptionOrNull() is VerbatimException
        }
        assertTrue(broken > 3, "only $broken cases saw it")
        failing(FailureKind.INVALID_INPUT) { runArchiveCase("no such case", OwnArchive()) }
        failing(FailureKind.INVALID_INPUT) { conformanceCases("no such port") }
    }

    @Test
    fun `transcripts over an archive in Kotlin`() = check {
        val archive = OwnArchive()
        repeat(2) {
            Transcripts(TranscriptsOptions(archive = archive, suppliers = emptyList())).useThenShutdown { transcripts ->
                transcripts.importCaptions(LINK, SRT, "en")
                assertEquals(2, transcripts.get(LINK).segments.size)
                assertEquals(61_000L, transcripts.search("closed").single().startMs)
            }
        }
        assertEquals(1uL, archive.stats().transcripts)
    }

    @Test
    fun `a store that fails is an error of its own`() = check {
        val faults = listOf(
            code { throw failed(FailureKind.UNAVAILABLE, "it is away") } to FailureKind.UNAVAILABLE,
            code { throw failed(FailureKind.CORRUPT, "it is broken") } to FailureKind.CORRUPT,
            code { throw IllegalStateException("a bug") } to FailureKind.UNEXPECTED,
            code { throw StackOverflowError() } to FailureKind.UNEXPECTED,
            code { awaitCancellation() } to FailureKind.UNAVAILABLE,
            code { nonsense() } to FailureKind.CORRUPT,
        )
        for ((fault, kind) in faults) {
            val broken = object : ArchiveStore by OwnArchive() {
                override suspend fun find(video: VideoId, wish: Wish, now: Timestamp): ArchiveFind = fault()
            }
            val options =
                TranscriptsOptions(archive = broken, suppliers = emptyList(), storeTimeout = Duration.ofMillis(50))
            Transcripts(options).useThenShutdown { failing(kind) { it.get(LINK) } }
        }
    }

    @Test
    fun `a store that returns what is no answer is an error of its own`() = check {
        val broken = object : ArchiveStore by OwnArchive() {
            override suspend fun page(page: PageRequest): TrackPage =
                TrackPage(listOf(ArchivedTrack(Video(Platform.REELS, "\u0000 no id"), track(), emptyList(), 1u, 0)), null)
        }
        Transcripts(TranscriptsOptions(archive = broken, suppliers = emptyList())).useThenShutdown { transcripts ->
            assertContains(failing(FailureKind.UNEXPECTED) { transcripts.search("word") }.sentence, "the app's own code")
        }
    }

    private fun code(find: suspend () -> ArchiveFind) = find

    private fun track() = TrackInfo("en", TrackKind.HUMAN, null, false)

    private fun nonsense(): ArchiveFind {
        val transcript = Transcript(Platform.VIDEO_SITE, "no id at all", "en", TrackKind.HUMAN, emptyList())
        return ArchiveFind.Stored(StoredRecord(transcript, 1u, ByteArray(3), 1u, 0))
    }
}

private class PassedOnArchive(private val to: ArchiveStore) : ArchiveStore by to

private class PassedOnLedger(private val to: LedgerStore) : LedgerStore by to

private class PassedOnDirectory(private val to: DirectoryStore) : DirectoryStore by to
