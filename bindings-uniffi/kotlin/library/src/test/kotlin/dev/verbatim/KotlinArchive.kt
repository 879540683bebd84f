package dev.verbatim

import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock

/** An archive in Kotlin that conforms to the contract of the interface, as an example for an app. */
internal class KotlinArchive : ArchiveStore {
    private class VideoRecord(val video: Video) {
        var isWithdrawn = false
        val transcripts = mutableListOf<StoredTranscript>()
        val selected = mutableMapOf<String, Int>()
        val absences = mutableMapOf<String, Absence>()
        val tracks = mutableListOf<TrackInfo>()
        var metadata = VideoMetadata()

        fun details() = VideoDetails(metadata, tracks.toList())

        fun stored(selector: String): StoredTranscript? =
            selected[selector]?.let { transcripts[it].copy(details = details()) }

        fun addTrack(track: TrackInfo) {
            val index = tracks.indexOfFirst { it.isSame(track) }
            if (index < 0) tracks += track
            else tracks[index] = tracks[index].copy(original = tracks[index].original || track.original)
        }

        fun archived(track: TrackInfo): ArchivedTrack {
            val newest = transcripts.filter { it.track.isSame(track) }.maxByOrNull { it.revision }
            val selectors = selected.filterValues { transcripts[it].track.isSame(track) }.keys
            val sorted = selectors.sortedWith(compareBy({ it != "default" }, { it }))
            return ArchivedTrack(video, track, sorted, newest?.revision, newest?.storedAt)
        }

        fun add(request: PutRequest, revision: UInt): Int {
            transcripts += StoredTranscript(
                request.transcript,
                revision,
                request.contentSha256,
                request.parserVersion,
                request.now,
            )
            return transcripts.lastIndex
        }

        fun put(request: PutRequest) {
            val stored = request.selectors.mapNotNull { stored(it) }
            val isSame = { record: StoredTranscript -> record.contentSha256.contentEquals(request.contentSha256) }
            if (request.replace && stored.any { !isSame(it) }) {
                val index = add(request, stored.maxOf { it.revision } + 1u)
                for (selector in request.selectors) selected[selector] = index
            } else if (request.selectors.any { it !in selected }) {
                val same = transcripts.indexOfLast(isSame)
                val index = if (same < 0) add(request, 1u) else same
                for (selector in request.selectors) selected.putIfAbsent(selector, index)
            }
            for (track in request.knownTracks + request.transcript.info()) addTrack(track)
            metadata = mergeMetadata(request.metadata, metadata)
            for (selector in request.selectors) absences.remove(selector)
        }
    }

    private val lock = Mutex()
    private val records = mutableMapOf<Video, VideoRecord>()
    private val leases = mutableMapOf<Pair<Video, String>, FetchLease>()
    private val links = mutableMapOf<ShortLink, Video>()
    private var changes = 0uL

    private fun record(video: Video) = records.getOrPut(video) { VideoRecord(video) }

    private fun inOrder() = records.values.sortedWith(compareBy({ it.video.platform }, { it.video.id }))

    override suspend fun find(video: VideoId, selector: TrackSelector, now: Timestamp): FindOutcome = lock.withLock {
        val record = record(video)
        val absence = record.absences[selector]
        val stored = record.stored(selector)
        when {
            record.isWithdrawn -> FindOutcome.Withdrawn
            stored != null -> FindOutcome.Stored(stored)
            absence != null && absence.until > now -> FindOutcome.Absent(absence)
            else -> FindOutcome.NotFound
        }
    }

    override suspend fun tracks(video: VideoId): List<ArchivedTrack> = lock.withLock {
        val record = record(video)
        if (record.isWithdrawn) emptyList() else record.tracks.map { record.archived(it) }
    }

    override suspend fun put(request: PutRequest): StoredTranscript = lock.withLock {
        val record = record(request.video)
        if (record.isWithdrawn) throw verbatimError(FailureKind.CONFLICT, "the video is withdrawn")
        val before = record.selected.toMap()
        val details = record.details()
        record.put(request)
        if (before.isNotEmpty() && (before != record.selected || details != record.details())) changes++
        record.stored(request.selectors.first())
            ?: throw verbatimError(FailureKind.UNEXPECTED, "the transcript was not stored")
    }

    override suspend fun putAbsence(absence: Absence): Unit = lock.withLock {
        record(absence.video).absences[absence.selector] = absence
    }

    override suspend fun acquireLease(lease: FetchLease): LeaseOutcome = lock.withLock {
        val name = lease.video to lease.selector
        val current = leases[name]
        if (current != null && current.holder != lease.holder && current.until > lease.now) {
            return LeaseOutcome.Busy(current.until)
        }
        val own = current?.takeIf { it.holder == lease.holder }
        leases[name] = own?.let { lease.copy(until = maxOf(lease.until, it.until)) } ?: lease
        LeaseOutcome.Acquired
    }

    override suspend fun releaseLease(video: VideoId, selector: TrackSelector, holder: Holder): Unit = lock.withLock {
        if (leases[video to selector]?.holder == holder) leases.remove(video to selector)
    }

    override suspend fun shortLink(link: ShortLinkId): VideoId? = lock.withLock { links[link] }

    override suspend fun putShortLink(link: ShortLinkId, video: VideoId): Unit = lock.withLock {
        links.putIfAbsent(link, video)
    }

    override suspend fun withdraw(video: VideoId, withdrawn: Boolean, now: Timestamp): Unit = lock.withLock {
        record(video).isWithdrawn = withdrawn
        changes++
    }

    override suspend fun delete(video: VideoId): Unit = lock.withLock {
        val isWithdrawn = record(video).isWithdrawn
        records[video] = VideoRecord(video).also { it.isWithdrawn = isWithdrawn }
        changes++
    }

    override suspend fun changeCounter(): ULong = lock.withLock { changes }

    override suspend fun listTracks(page: PageRequest): TrackPage = lock.withLock {
        val entries = inOrder().flatMap { record ->
            record.tracks.mapIndexed { index, track ->
                // A space sorts before all characters of ids.
                val name = "%d %s %06d".format(record.video.platform.ordinal, record.video.id, index)
                name to record.archived(track)
            }
        }
        val (items, next) = paged(entries.filter { it.second.revision != null }, page)
        TrackPage(items, next)
    }

    override suspend fun listWithdrawn(page: PageRequest): VideoPage = lock.withLock {
        val entries = inOrder().filter { it.isWithdrawn }
            .map { "${it.video.platform.ordinal} ${it.video.id}" to it.video }
        val (items, next) = paged(entries, page)
        VideoPage(items, next)
    }

    override suspend fun stats(): ArchiveStats = lock.withLock {
        val stored = records.values.flatMap { it.transcripts }
        ArchiveStats(
            videos = records.values.count { it.transcripts.isNotEmpty() }.toULong(),
            transcripts = stored.size.toULong(),
            absences = records.values.sumOf { it.absences.size }.toULong(),
            withdrawn = records.values.count { it.isWithdrawn }.toULong(),
            links = links.size.toULong(),
            bytes = stored.sumOf { record -> record.transcript.segments.sumOf { it.text.length + 16 } }.toULong(),
        )
    }

    private fun <T> paged(entries: List<Pair<String, T>>, page: PageRequest): Pair<List<T>, String?> {
        val size = page.limit.coerceIn(1u, 1_000u).toInt()
        val rest = entries.filter { (name, _) -> page.after?.let { name > it } ?: true }
        return rest.take(size).map { it.second } to if (rest.size > size) rest[size - 1].first else null
    }
}

private fun TrackInfo.isSame(other: TrackInfo): Boolean =
    language == other.language && kind == other.kind && name == other.name

private fun Transcript.info() = TrackInfo(language, kind, trackName, isOriginal)

private val StoredTranscript.track: TrackInfo
    get() = transcript.info()
