import XCTest

@testable import Verbatim

final class SupplierTests: XCTestCase {
    func testUpdatesReturnStagesThenTranscript() async throws {
        let transcripts = try transcriptsWithSupplier { request in
            request.monitor.reportProgress(name: "reading", done: 1, total: 1)
            return [makeTranscript(request, "of \(request.videoId)")]
        }
        var stages: [String] = []
        var text: String?
        for try await update in transcripts.updates(of: link) {
            switch update {
            case .stage(let stage): stages.append(stage.name)
            case .done(let transcript): text = transcript.segments.first?.text
            }
        }
        XCTAssertTrue(stages.contains("reading"))
        XCTAssertEqual(text, "of dQw4w9WgXcQ")
    }

    func testMetadataAndWordsAreArchived() async throws {
        let metadata = VideoMetadata(
            authorId: "UC-x", publishedAt: 1_700_000_000_000, live: .wasLive, chapters: [Chapter(title: "Start", startMs: 0)]
        )
        let words = [Word(text: "so", startMs: 10, durationMs: 200), Word(text: "go", startMs: 700, durationMs: 33)]
        let transcripts = try transcriptsWithSupplier { request in
            [Transcript(
                platform: request.platform, videoId: request.videoId, language: "en", kind: .human,
                segments: [Segment(text: "so, we go", startMs: 0, durationMs: 900, words: words)],
                durationMs: 3_600_000, metadata: metadata
            )]
        }
        for fromCache in [false, true] {
            let found = try await transcripts.transcript(of: link)
            XCTAssertEqual(found.fromCache, fromCache)
            XCTAssertEqual(found.segments[0].words, words)
            XCTAssertEqual(found.segments[0].words[1].start, 0.7)
            XCTAssertEqual(found.segments[0].words[1].end, 0.733, accuracy: 0.000_1)
            XCTAssertEqual(found.segments.map(\.end), [0.9])
            XCTAssertEqual(found.duration, 3_600)
            let chunk = try XCTUnwrap(try found.chunks(size: 60).first)
            XCTAssertEqual([chunk.start, chunk.end], [0, 0.9])
            XCTAssertEqual(found.metadata, metadata)
            XCTAssertEqual(found.metadata.published, Date(timeIntervalSince1970: 1_700_000_000))
            XCTAssertEqual(found.chapters.map(\.start), [0])
            XCTAssertEqual(try found.chunks(size: 60).map(\.startMs), found.segments.prefix(1).map(\.startMs))
            XCTAssertEqual(try found.pages().map(\.segments), [found.segments])
            XCTAssertEqual(try found.pages(maxChars: 1).flatMap(\.segments), found.segments)
            XCTAssertEqual(found.tracks.map(\.displayName), ["English"])
        }
    }

    func testSupplyErrorDecidesFailureKind() async throws {
        struct Bug: Error {}
        let failures: [(Error, FailureKind)] = [
            (SupplyFailure.failed(.private, "It is private."), .noCaptions),
            (SupplyFailure.failed(.throttled, "Too many requests.", retryAfter: 7), .rateLimited),
            (VerbatimError.failed(.corrupt, "of the wrong kind"), .fetchFailed),
            (Bug(), .fetchFailed),
        ]
        for (error, kind) in failures {
            let transcripts = try transcriptsWithSupplier { _ in throw error }
            let received = await failure { _ = try await transcripts.transcript(of: link) }
            XCTAssertEqual(received?.kind, kind, received?.message ?? "")
        }
    }

    func testSupplyFailurePrintsItsSentence() {
        let failure = SupplyFailure.failed(.private, "It is private.")
        XCTAssertEqual("\(failure)", "It is private.")
        XCTAssertEqual(failure.localizedDescription, "It is private.")
    }

    func testInvalidTranscriptFailsCall() async throws {
        let invalid: [@Sendable (SupplyRequest) -> Transcript] = [
            { Transcript(platform: $0.platform, videoId: "another-one", language: "en", kind: .human, segments: []) },
            { Transcript(platform: $0.platform, videoId: $0.videoId, language: "en", kind: .human, segments: []) },
            {
                Transcript(
                    platform: $0.platform, videoId: $0.videoId, language: "en", kind: .human,
                    segments: [Segment(text: "x", startMs: -1, durationMs: .max)]
                )
            },
        ]
        for make in invalid {
            let transcripts = try transcriptsWithSupplier { [make($0)] }
            let received = await failure { _ = try await transcripts.transcript(of: link) }
            XCTAssertNotNil(received)
        }
    }

    func testCancelledTaskCancelsSupplier() async throws {
        let started = expectation(description: "the supplier was called")
        let ended = expectation(description: "the supplier was cancelled")
        let transcripts = try transcriptsWithSupplier { _ in
            started.fulfill()
            do { try await hang() } catch is CancellationError { ended.fulfill() }
            return []
        }
        let task = Task { try await transcripts.transcript(of: link) }
        await fulfillment(of: [started], timeout: 30)
        task.cancel()
        do {
            _ = try await task.value
            XCTFail("the task was cancelled")
        } catch is CancellationError {}
        await fulfillment(of: [ended], timeout: 30)
    }

    func testTaskCancelledBeforeStartCallsNoSupplier() async throws {
        let transcripts = try transcriptsWithSupplier { _ in
            XCTFail("the task was cancelled before")
            return []
        }
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await transcripts.transcript(of: link)
        }
        task.cancel()
        do {
            _ = try await task.value
            XCTFail("the task was cancelled")
        } catch is CancellationError {}
    }

    func testEndedStreamCancelsSupplier() async throws {
        let ended = expectation(description: "the supplier was cancelled")
        let transcripts = try transcriptsWithSupplier { request in
            request.monitor.reportProgress(name: "reading", done: 0, total: 1)
            do { try await hang() } catch is CancellationError { ended.fulfill() }
            return []
        }
        for try await _ in transcripts.updates(of: link) { break }
        await fulfillment(of: [ended], timeout: 30)
    }

    func testTimeoutEndsCall() async throws {
        let transcripts = try transcriptsWithSupplier { _ in try await hang() }
        let late = await failure { _ = try await transcripts.transcript(of: link, timeout: 0.05) }
        XCTAssertEqual(late?.kind, .timedOut)
        let slow = SupplierSpec.function("mine") { _ in try await hang() }
        let limited = try Transcripts(options: TranscriptsOptions(suppliers: [slow], supplierTimeout: 0.05))
        let hanging = await failure { _ = try await limited.transcript(of: link) }
        XCTAssertEqual(hanging?.kind, .fetchFailed)
    }

    func testThrowingListenerHasNoEffect() async throws {
        final class FailingListener: ProgressListener {
            struct Bug: Error {}
            func onStage(stage: Stage) async throws { throw Bug() }
            func onResult(result: BatchResult) async throws { throw Bug() }
        }
        let transcripts = try transcriptsWithSupplier { [makeTranscript($0, "done")] }
        let found = try await transcripts.get(link: link, listener: FailingListener())
        XCTAssertEqual(found.segments.map(\.text), ["done"])
    }
}
