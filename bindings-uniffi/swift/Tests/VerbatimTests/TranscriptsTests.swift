import XCTest

@testable import Verbatim

final class TranscriptsTests: XCTestCase {
    func testImportedTranscriptIsFoundUntilShutdown() async throws {
        let transcripts = try await archiveWithTranscript()
        let found = try await transcripts.transcript(of: link)
        XCTAssertEqual(found.segments.map(\.text), ["It is so quiet here.", "The café is closed."])
        XCTAssertEqual(found.segments[0].start, 1.5)
        XCTAssertTrue(try found.srt().contains("00:01:01,000 --> 00:01:04,000"))
        let hits = try await transcripts.search("CAFE closed")
        XCTAssertEqual(hits.map(\.startMs), [61_000])
        try await transcripts.shutdown()
        let after = await failure { _ = try await transcripts.transcript(of: link) }
        XCTAssertEqual(after?.kind, .closed)
    }

    func testFolderStorageSurvivesPauseAndRestart() async throws {
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

    func testTranscriptsForLinksReturnAllResults() async throws {
        let transcripts = try await archiveWithTranscript()
        var results: [String: Bool] = [:]
        for await result in transcripts.transcripts(for: [link, "no link"], concurrency: 2) {
            results[result.link] = result.transcript != nil
        }
        XCTAssertEqual(results, [link: true, "no link": false])
    }

    func testTranscriptsForLinksStartWhenResultsAreTaken() async throws {
        let calls = CallCount()
        let transcripts = try transcriptsWithSupplier { request in
            await calls.add()
            return [makeTranscript(request, "done")]
        }
        let links = (0..<100).map { String(format: "%011d", $0) }
        for await result in transcripts.transcripts(for: links, concurrency: 2) {
            XCTAssertNotNil(result.transcript)
            try await Task.sleep(nanoseconds: 500_000_000)
            break
        }
        try await Task.sleep(nanoseconds: 500_000_000)
        let started = await calls.count
        XCTAssertLessThanOrEqual(started, 4)
    }

    func testMemoryStorageSurvivesPause() async throws {
        let transcripts = try await archiveWithTranscript()
        try await transcripts.pause()
        let found = try await transcripts.transcript(of: link)
        XCTAssertTrue(found.fromCache)
    }

    func testRecordWithKeyDoesNotPrintIt() throws {
        let options = ClientOptions(baseUrl: "https://verbatim.example", key: "vbk_secret")
        XCTAssertFalse("\(options)".contains("secret"), "\(options)")
    }

    func testTimesOutOfRangeEndCallsNotApp() async throws {
        let slow = try transcriptsWithSupplier { _ in try await hang() }
        let past: [TimeInterval] = [-1, -TimeInterval.infinity, TimeInterval.nan]
        for timeout in past {
            let late = await failure { _ = try await slow.transcript(of: link, timeout: timeout) }
            XCTAssertEqual(late?.kind, .timedOut)
        }
        let transcripts = try await archiveWithTranscript()
        let found = try await transcripts.transcript(of: link, timeout: TimeInterval.infinity)
        for time in past {
            let invalid = await failure { _ = try found.chunks(size: time) }
            XCTAssertEqual(invalid?.kind, .invalidInput)
        }
        XCTAssertEqual(try found.chunks(size: TimeInterval.infinity).count, 1)
        for maxWait in past + [TimeInterval.infinity] {
            for await result in transcripts.transcripts(for: [link], maxWait: maxWait) {
                XCTAssertNotNil(result.transcript)
            }
        }
    }

    func testInvalidLinkFailsWithMessage() async throws {
        let transcripts = try await archiveWithTranscript()
        let none = await failure { _ = try await transcripts.transcript(of: "no link") }
        XCTAssertEqual(none?.kind, .invalidInput)
        XCTAssertEqual(none.map { VerbatimError.Failed(failure: $0).description }, none?.message)
    }

    func testChatModelInSwiftAnswersQuestion() async throws {
        final class Model: ChatModel {
            func complete(messages: [ChatMessage], tokensMax: UInt32) async throws -> String {
                "They say \"The café is closed.\" [s1]"
            }
        }
        let transcripts = try await archiveWithTranscript(TranscriptsOptions(suppliers: [], chatModel: Model()))
        let answer = try await transcripts.answer(to: "What is closed?", about: link)
        XCTAssertTrue(answer.response.contains("The café is closed"), answer.response)
        XCTAssertNil(answer.creditsRemaining)
    }

    func testEmbeddingModelInSwiftFindsMeaning() async throws {
        final class Topics: EmbeddingModel {
            func model() -> String { "topics-1" }

            func embed(texts: [String], purpose: EmbedPurpose) async throws -> [[Float]] {
                texts.map { $0.contains("café") || $0.contains("espresso") ? [1, 0] : [0, 1] }
            }
        }
        let transcripts = try await archiveWithTranscript(
            TranscriptsOptions(suppliers: [], embeddingModel: Topics()))
        let answer = try await transcripts.answer(to: "Is the espresso closed?", about: link)
        XCTAssertTrue(answer.response.contains("café"), answer.response)
    }
}
