import XCTest

@testable import Verbatim

/// Lists of videos, with recorded pages of YouTube.
final class VideoListTests: XCTestCase {
    private func transcripts() throws -> Transcripts {
        let environment = ProcessInfo.processInfo.environment
        let proxy = try XCTUnwrap(environment["VERBATIM_TEST_PROXY"], "VERBATIM_TEST_PROXY is not set")
        let caFile = try XCTUnwrap(environment["VERBATIM_TEST_CA"], "VERBATIM_TEST_CA is not set")
        return try Transcripts(options: TranscriptsOptions(proxies: [proxy], caFile: caFile))
    }

    private func ids(_ videos: VideoList) async throws -> [String] {
        try await videos.reduce(into: []) { $0.append($1.videoId) }
    }

    func testPlaylistAndChannelAreSequencesOfTheirVideos() async throws {
        let transcripts = try transcripts()
        let all = try await ids(transcripts.videos(of: "PLvb-tides-0001"))
        XCTAssertEqual(all, ["vb-tracks-0", "vb-asronly0", "vb-private0", "vb-french-0"])
        let three = try await ids(transcripts.videos(of: "PLvb-tides-0001", limit: 3))
        XCTAssertEqual(three, Array(all.prefix(3)))
        for try await video in transcripts.videos(of: "PLvb-tides-0001") {
            XCTAssertEqual(video.title, "How a tide mill works")
            XCTAssertEqual(video.duration, 30)
            break
        }
        let year = Date().addingTimeInterval(-365 * 24 * 3_600)
        let recent = try await ids(transcripts.videos(of: "@tidemills", tab: .videos, since: year))
        XCTAssertEqual(recent, ["vb-tracks-0", "vb-french-0"])
        let none = try await ids(transcripts.videos(of: "PLvb-empty-0001"))
        XCTAssertEqual(none, [])
        let found = try await ids(transcripts.youtubeSearch("tide mills", limit: 2))
        XCTAssertEqual(found, ["vb-tracks-0", "vb-asronly0"])
        XCTAssertThrowsError(try transcripts.youtubeSearch(" "))
    }

    func testListThatCannotBeReadFailsWithReason() async throws {
        let transcripts = try transcripts()
        for (list, kind, reason) in [
            ("PLvb-private-01", FailureKind.notFound, "private"),
            ("PLvb-cut-000001", FailureKind.fetchFailed, "unreadable"),
            ("https://youtu.be/vb-tracks-0", FailureKind.invalidInput, nil),
        ] {
            let found = await failure { _ = try await self.ids(transcripts.videos(of: list)) }
            XCTAssertEqual(found?.kind, kind, list)
            XCTAssertEqual(found?.reason, reason, list)
        }
    }
}
