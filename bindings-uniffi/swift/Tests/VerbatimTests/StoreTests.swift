import XCTest

@testable import Verbatim

/// An archive of the app's: every call goes through Swift, to one of the library's own.
private final class Forwarding: ArchiveStore, @unchecked Sendable {
    // The store behind it may be used from any task.
    private let inner: ArchiveStore = memoryArchive()

    func find(video: VideoId, wish: Wish, now: Timestamp) async throws -> ArchiveFind {
        try await inner.find(video: video, wish: wish, now: now)
    }

    func tracks(video: VideoId) async throws -> [ArchivedTrack] { try await inner.tracks(video: video) }

    func keep(keep: ArchiveKeep) async throws -> StoredRecord { try await inner.keep(keep: keep) }

    func keepAbsence(absence: Absence) async throws { try await inner.keepAbsence(absence: absence) }

    func claim(lease: Lease) async throws -> Claim { try await inner.claim(lease: lease) }

    func unclaim(video: VideoId, wish: Wish, holder: Holder) async throws {
        try await inner.unclaim(video: video, wish: wish, holder: holder)
    }

    func link(link: ShortLink) async throws -> VideoId? { try await inner.link(link: link) }

    func keepLink(link: ShortLink, video: VideoId) async throws { try await inner.keepLink(link: link, video: video) }

    func withdraw(video: VideoId, withdrawn: Bool, now: Timestamp) async throws {
        try await inner.withdraw(video: video, withdrawn: withdrawn, now: now)
    }

    func forget(video: VideoId) async throws { try await inner.forget(video: video) }

    func page(page: PageRequest) async throws -> TrackPage { try await inner.page(page: page) }

    func withdrawn(page: PageRequest) async throws -> VideoPage { try await inner.withdrawn(page: page) }

    func stats() async throws -> Stats { try await inner.stats() }

    func changes() async throws -> UInt64 { try await inner.changes() }
}

final class StoreTests: XCTestCase {
    func testAnArchiveInSwiftIsHeldToTheRules() async throws {
        let cases = try conformanceCases(port: "archive")
        XCTAssertGreaterThan(cases.count, 10)
        for name in cases {
            let broken = await failure { try await runArchiveCase(name: name, store: Forwarding()) }
            XCTAssertNil(broken, "\(name): \(broken?.sentence ?? "")")
        }
    }

    func testATranscriptIsFoundInIt() async throws {
        let archive = Forwarding()
        for _ in 0..<2 {
            let transcripts = try await shelf(TranscriptsOptions(suppliers: [], archive: archive))
            let found = try await transcripts.transcript(of: link)
            XCTAssertEqual(found.segments.count, 2)
            try await transcripts.shutdown()
        }
    }
}
