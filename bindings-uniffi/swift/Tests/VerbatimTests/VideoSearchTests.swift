import XCTest

@testable import Verbatim

/// Search in the whole archive.
final class VideoSearchTests: XCTestCase {
    private func srt(_ text: String) -> Data {
        Data("1\n00:00:01,500 --> 00:00:04,000\n\(text)\n".utf8)
    }

    /// An archive in a folder, with talks about lighthouses.
    private func archive() async throws -> Transcripts {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        let transcripts = try Transcripts(in: folder, suppliers: [])
        for number in 10..<35 {
            let link = "https://youtu.be/video0000\(number)"
            try await transcripts.import(srt("Lighthouses, number \(number)"), for: link, language: "en")
        }
        try await transcripts.import(srt("Leuchttürme 🌊 am Meer"), for: "https://youtu.be/dddddddddde", language: "de")
        return transcripts
    }

    private func ids(_ search: VideoSearch) async throws -> [String] {
        try await search.reduce(into: []) { $0.append($1.transcript.videoId) }
    }

    func testSearchIsSequenceOfAllPages() async throws {
        let transcripts = try await archive()
        let search = transcripts.searchVideos("lighthouse", pageSize: 10)
        let found = try await ids(search)
        XCTAssertEqual(found.count, 25)
        XCTAssertEqual(Set(found).count, 25)
        let first = try await search.firstPage()
        XCTAssertEqual(first.total, 25)
        XCTAssertTrue(first.isTotalExact)
        XCTAssertEqual(first.hits.map(\.transcript.videoId), Array(found.prefix(10)))
        let one = try await ids(transcripts.searchVideos("\"number 17\"", sort: .date))
        XCTAssertEqual(one, ["video000017"])
        let none = try await ids(transcripts.searchVideos("lighthouse", platform: .x))
        XCTAssertEqual(none, [])
        let suggestion = try await transcripts.searchVideos("lighthuoses").firstPage().suggestion
        XCTAssertEqual(suggestion, "lighthouses")
        try await transcripts.shutdown()
    }

    func testMomentMarksMatchesInText() async throws {
        let transcripts = try await archive()
        for try await hit in transcripts.searchVideos("meer", language: "de") {
            let moment = try XCTUnwrap(hit.moments.first)
            XCTAssertEqual(moment.matchRanges.map { String(moment.text[$0]) }, ["Meer"])
            XCTAssertEqual(moment.start, 1.5)
            XCTAssertEqual(moment.end, 4)
            XCTAssertTrue(moment.url.hasSuffix("t=1s"), moment.url)
        }
        let empty = try await ids(transcripts.searchVideos("***"))
        XCTAssertEqual(empty, [])
        try await transcripts.shutdown()
    }

    func testSearchRejectsInvalidOptions() async throws {
        let transcripts = try await archive()
        for search in [
            transcripts.searchVideos("a", language: "no tag"),
            transcripts.searchVideos("a", pageSize: 0),
            transcripts.searchVideos("a", pageSize: -1),
            transcripts.searchVideos("a", pageSize: 101),
        ] {
            let found = await failure { _ = try await self.ids(search) }
            XCTAssertEqual(found?.kind, .invalidInput)
        }
        try await transcripts.shutdown()
    }
}
