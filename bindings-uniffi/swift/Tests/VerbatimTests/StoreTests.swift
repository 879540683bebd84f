import XCTest

@testable import Verbatim

/// An archive in Swift that passes each call to the library's own archive in memory.
private final class DelegatingArchive: ArchiveStore, @unchecked Sendable {
    // The inner store is thread-safe.
    private let inner: ArchiveStore = memoryArchive()

    func find(video: VideoId, selector: TrackSelector, now: Timestamp) async throws -> FindOutcome {
        try await inner.find(video: video, selector: selector, now: now)
    }

    func tracks(video: VideoId) async throws -> [ArchivedTrack] { try await inner.tracks(video: video) }

    func put(request: PutRequest) async throws -> StoredTranscript { try await inner.put(request: request) }

    func putAbsence(absence: Absence) async throws { try await inner.putAbsence(absence: absence) }

    func acquireLease(lease: FetchLease) async throws -> LeaseOutcome { try await inner.acquireLease(lease: lease) }

    func releaseLease(video: VideoId, selector: TrackSelector, holder: Holder) async throws {
        try await inner.releaseLease(video: video, selector: selector, holder: holder)
    }

    func shortLink(link: ShortLinkId) async throws -> VideoId? { try await inner.shortLink(link: link) }

    func putShortLink(link: ShortLinkId, video: VideoId) async throws {
        try await inner.putShortLink(link: link, video: video)
    }

    func withdraw(video: VideoId, withdrawn: Bool, now: Timestamp) async throws {
        try await inner.withdraw(video: video, withdrawn: withdrawn, now: now)
    }

    func delete(video: VideoId) async throws { try await inner.delete(video: video) }

    func listTracks(page: PageRequest) async throws -> TrackPage { try await inner.listTracks(page: page) }

    func listWithdrawn(page: PageRequest) async throws -> VideoPage { try await inner.listWithdrawn(page: page) }

    func stats() async throws -> ArchiveStats { try await inner.stats() }

    func changeCounter() async throws -> UInt64 { try await inner.changeCounter() }
}

final class StoreTests: XCTestCase {
    func testArchiveInSwiftConforms() async throws {
        let cases = try conformanceCases(port: "archive")
        XCTAssertGreaterThan(cases.count, 10)
        for name in cases {
            let broken = await failure { try await runArchiveCase(name: name, store: DelegatingArchive()) }
            XCTAssertNil(broken, "\(name): \(broken?.message ?? "")")
        }
    }

    func testTranscriptsUseArchiveInSwift() async throws {
        let archive = DelegatingArchive()
        for _ in 0..<2 {
            let transcripts = try await archiveWithTranscript(TranscriptsOptions(suppliers: [], archive: archive))
            let found = try await transcripts.transcript(of: link)
            XCTAssertEqual(found.segments.count, 2)
            try await transcripts.shutdown()
        }
    }
}
