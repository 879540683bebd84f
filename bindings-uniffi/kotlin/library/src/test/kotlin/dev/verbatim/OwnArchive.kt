package dev.verbatim

import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock

/** An archive written in Kotlin, by the contract of the interface: what an app's own may look like. */
internal class OwnArchive : ArchiveStore {
    private class Shelf(val video: Video) {
        var isWithdrawn = false
        val transcripts = mutableListOf<StoredRecord>()
        val wishes = mutableMapOf<String, Int>()
        val absences = mutableMapOf<String, Absence>()
        val tracks = mutableListOf<TrackInfo>()

        fun stored(wish: String): StoredRecord? = wishes[wish]?.let { transcripts[it] }

        fun know(track: TrackInfo) {
            val place = tracks.indexOfFirst { it.isSame(track) }
            if (place < 0) tracks += track
            else tracks[place] = tracks[place].copy(original = tracks[place].original || track.original)
        }

        fun archived(track: TrackInfo): ArchivedTrack {
            val newest = transcripts.filter { it.track.isSame(track) }.maxByOrNull { it.revision }
            val answered = wishes.filterValues { transcripts[it].track.isSame(track) }.keys
            val sorted = answered.sortedWith(compareBy({ it != "default" }, { it }))
            return ArchivedTrack(video, track, sorted, newest?.revision, newest?.storedAt)
        }

        fun add(keep: ArchiveKeep, revision: UInt): Int {
            transcripts += StoredRecord(keep.transcript, revision, keep.contentSha256, keep.parserVersion, keep.now)
            return transcripts.lastIndex
        }

        fun keep(keep: ArchiveKeep) {
            val stored = keep.wishes.mapNotNull { stored(it) }
            val isSame = { record: StoredRecord -> record.contentSha256.contentEquals(keep.contentSha256) }
            if (keep.replace && stored.any { !isSame(it) }) {
                val place = add(keep, stored.maxOf { it.revision } + 1u)
                for (wish in keep.wishes) wishes[wish] = place
            } else if (keep.wishes.any { it !in wishes }) {
                val same = transcripts.indexOfLast(isSame)
                val place = if (same < 0) add(keep, 1u) else same
                for (wish in keep.wishes) wishes.putIfAbsent(wish, place)
            }
            for (track in keep.knownTracks + keep.transcript.info()) know(track)
            for (wish in keep.wishes) absences.remove(wish)
        }
    }

    private val lock = Mutex()
    private val shelves = mutableMapOf<Video, Shelf>()
    private val leases = mutableMapOf<Pair<Video, String>, Lease>()
    private val links = mutableMapOf<ShortLinkName, Video>()
    private var changed = 0uL

    private fun shelf(video: Video) = shelves.getOrPut(video) { Shelf(video) }

    private fun inOrder() = shelves.values.sortedWith(compareBy({ it.video.platform }, { it.video.id }))

    override suspend fun find(video: VideoId, wish: Wish, now: Timestamp): ArchiveFind = lock.withLock {
        val shelf = shelf(video)
        val absence = shelf.absences[wish]
        val stored = shelf.stored(wish)
        when {
            shelf.isWithdrawn -> ArchiveFind.Withdrawn
            stored != null -> ArchiveFind.Stored(stored)
            absence != null && absence.until > now -> ArchiveFind.Absent(absence)
            else -> ArchiveFind.Nothing
        }
    }

    override suspend fun tracks(video: VideoId): List<ArchivedTrack> = lock.withLock {
        val shelf = shelf(video)
        if (shelf.isWithdrawn) emptyList() else shelf.tracks.map { shelf.archived(it) }
    }

    override suspend fun keep(keep: ArchiveKeep): StoredRecord = lock.withLock {
        val shelf = shelf(keep.video)
        if (shelf.isWithdrawn) throw failed(FailureKind.CONFLICT, "the video is withdrawn")
        val before = shelf.wishes.toMap()
        shelf.keep(keep)
        if (before.isNotEmpty() && before != shelf.wishes) changed++
        shelf.stored(keep.wishes.first()) ?: throw failed(FailureKind.UNEXPECTED, "it was not kept")
    }

    override suspend fun keepAbsence(absence: Absence): Unit = lock.withLock {
        shelf(absence.video).absences[absence.wish] = absence
    }

    override suspend fun claim(lease: Lease): Claim = lock.withLock {
        val name = lease.video to lease.wish
        val held = leases[name]
        if (held != null && held.holder != lease.holder && held.until > lease.now) return Claim.Busy(held.until)
        val own = held?.takeIf { it.holder == lease.holder }
        leases[name] = own?.let { lease.copy(until = maxOf(lease.until, it.until)) } ?: lease
        Claim.Claimed
    }

    override suspend fun unclaim(video: VideoId, wish: Wish, holder: Holder): Unit = lock.withLock {
        if (leases[video to wish]?.holder == holder) leases.remove(video to wish)
    }

    override suspend fun link(link: ShortLink): VideoId? = lock.withLock { links[link] }

    override suspend fun keepLink(link: ShortLink, video: VideoId): Unit = lock.withLock {
        links.putIfAbsent(link, video)
    }

    override suspend fun withdraw(video: VideoId, withdrawn: Boolean, now: Timestamp): Unit = lock.withLock {
        shelf(video).isWithdrawn = withdrawn
        changed++
    }

    override suspend fun forget(video: VideoId): Unit = lock.withLock {
        val isWithdrawn = shelf(video).isWithdrawn
        shelves[video] = Shelf(video).also { it.isWithdrawn = isWithdrawn }
        changed++
    }

    override suspend fun changes(): ULong = lock.withLock { changed }

    override suspend fun page(page: PageRequest): TrackPage = lock.withLock {
        val named = inOrder().flatMap { shelf ->
            shelf.tracks.mapIndexed { place, track ->
                // A space sorts before all that ids are made of.
                val name = "%d %s %06d".format(shelf.video.platform.ordinal, shelf.video.id, place)
                name to shelf.archived(track)
            }
        }
        val (items, next) = paged(named.filter { it.second.revision != null }, page)
        TrackPage(items, next)
    }

    override suspend fun withdrawn(page: PageRequest): VideoPage = lock.withLock {
        val named = inOrder().filter { it.isWithdrawn }.map { "${it.video.platform.ordinal} ${it.video.id}" to it.video }
        val (items, next) = paged(named, page)
        VideoPage(items, next)
    }

    override suspend fun stats(): Stats = lock.withLock {
        val stored = shelves.values.flatMap { it.transcripts }
        Stats(
            videos = shelves.values.count { it.transcripts.isNotEmpty() }.toULong(),
            transcripts = stored.size.toULong(),
            absences = shelves.values.sumOf { it.absences.size }.toULong(),
            withdrawn = shelves.values.count { it.isWithdrawn }.toULong(),
            links = links.size.toULong(),
            bytes = stored.sumOf { record -> record.transcript.segments.sumOf { it.text.length + 16 } }.toULong(),
        )
    }

    private fun <T> paged(named: List<Pair<String, T>>, page: PageRequest): Pair<List<T>, String?> {
        val size = page.limit.coerceIn(1u, 1_000u).toInt()
        val rest = named.filter { (name, _) -> page.after?.let { name > it } ?: true }
        return rest.take(size).map { it.second } to if (rest.size > size) rest[size - 1].first else null
    }
}

private fun TrackInfo.isSame(other: TrackInfo): Boolean =
    language == other.language && kind == other.kind && name == other.name

private fun Transcript.info() = TrackInfo(language, kind, trackName, isOriginal)

private val StoredRecord.track: TrackInfo
    get() = transcript.info()
