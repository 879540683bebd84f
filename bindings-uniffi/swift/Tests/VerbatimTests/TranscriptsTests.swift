import XCTest

@testable import Verbatim

private let link = "https://youtu.be/dQw4w9WgXcQ"
private let captions = Data(
    """
    1
    00:00:01,500 --> 00:00:03,000
    It is so quiet here.

    2
    00:01:01,000 --> 00:01:04,000
    The café is closed.

    """.utf8
)

private func shelf() async throws -> Transcripts {
    let transcripts = try Transcripts(options: TranscriptsOptions(suppliers: []))
    try await transcripts.import(captions, for: link, language: "en")
    return transcripts
}

private func words(_ ask: SupplierAsk, _ text: String) -> Transcript {
    Transcript(
        platform: ask.platform, videoId: ask.videoId, language: ask.language ?? "en", kind: .human,
        segments: [Segment(text: text, startMs: 0, durationMs: 900)]
    )
}

private func kind(_ work: () async throws -> Void) async -> FailureKind? {
    do {
        try await work()
        return nil
    } catch {
        return (error as? VerbatimError)?.kind
    }
}

final class TranscriptsTests: XCTestCase {
    func testWhatWasImportedIsFound() async throws {
        let transcripts = try await shelf()
        let found = try await transcripts.transcript(of: link)
        XCTAssertEqual(found.segments.map(\.text), ["It is so quiet here.", "The café is closed."])
        XCTAssertEqual(found.segments[0].start, 1.5)
        XCTAssertTrue(try found.srt().contains("00:01:01,000 --> 00:01:04,000"))
        let hits = try await transcripts.passages(with: "CAFE closed")
        XCTAssertEqual(hits.map(\.startMs), [61_000])
        try await transcripts.shutdown()
        let after = await kind { _ = try await transcripts.transcript(of: link) }
        XCTAssertEqual(after, .closed)
    }

    func testAFolderLasts() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        for _ in 0..<2 {
            let transcripts = try Transcripts(in: folder, suppliers: [])
            try await transcripts.import(captions, for: link, language: "en")
            try await transcripts.pause()
            let found = try await transcripts.transcript(of: link)
            XCTAssertEqual(found.segments.count, 2)
            try await transcripts.shutdown()
        }
    }

    func testASupplierOfTheApps() async throws {
        let own = SupplierChoice.function("mine") { ask in
            ask.watcher.stage(name: "reading", done: 1, of: 1)
            return [words(ask, "of \(ask.videoId)")]
        }
        let transcripts = try Transcripts(options: TranscriptsOptions(suppliers: [own]))
        var stages: [String] = []
        var text: String?
        for try await progress in transcripts.progress(of: link) {
            switch progress {
            case .underway(let stage): stages.append(stage.name)
            case .done(let transcript): text = transcript.segments.first?.text
            }
        }
        XCTAssertTrue(stages.contains("reading"))
        XCTAssertEqual(text, "of dQw4w9WgXcQ")
    }

    func testASupplierThatThrows() async throws {
        struct Bug: Error {}
        let own = SupplierChoice.function("mine") { _ in throw Bug() }
        let transcripts = try Transcripts(options: TranscriptsOptions(suppliers: [own]))
        let kind = await kind { _ = try await transcripts.transcript(of: link) }
        XCTAssertEqual(kind, .fetchFailed)
    }

    func testCancellingATaskEndsTheWork() async throws {
        let begun = expectation(description: "it was asked")
        let own = SupplierChoice.function("mine") { _ in
            begun.fulfill()
            try await Task.sleep(nanoseconds: 60_000_000_000)
            return []
        }
        let transcripts = try Transcripts(options: TranscriptsOptions(suppliers: [own]))
        let work = Task { try await transcripts.transcript(of: link) }
        await fulfillment(of: [begun])
        work.cancel()
        do {
            _ = try await work.value
            XCTFail("it was cancelled")
        } catch is CancellationError {}
    }

    func testATimeEndsTheWork() async throws {
        let own = SupplierChoice.function("mine") { _ in
            try await Task.sleep(nanoseconds: 60_000_000_000)
            return []
        }
        let transcripts = try Transcripts(options: TranscriptsOptions(suppliers: [own]))
        let kind = await kind { _ = try await transcripts.transcript(of: link, timeout: 0.05) }
        XCTAssertEqual(kind, .timedOut)
    }

    func testSeveralLinks() async throws {
        let transcripts = try await shelf()
        var answers: [String: Bool] = [:]
        for await answer in transcripts.answers(to: [link, "no link"], atOnce: 2) {
            answers[answer.link] = answer.transcript != nil
        }
        XCTAssertEqual(answers, [link: true, "no link": false])
    }
}
