import XCTest

@testable import Verbatim

final class SupplierTests: XCTestCase {
    func testWhatItSaysIsTold() async throws {
        let transcripts = try asking { ask in
            ask.watcher.stage(name: "reading", done: 1, of: 1)
            return [words(ask, "of \(ask.videoId)")]
        }
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

    func testWhatItFailsWithDecidesWhatIsTold() async throws {
        struct Bug: Error {}
        let failures: [(Error, FailureKind)] = [
            (SupplyFailure.Failed(reason: .private, sentence: "It is private.", retryAfter: nil), .noCaptions),
            (SupplyFailure.Failed(reason: .throttled, sentence: "Not now.", retryAfter: 7), .rateLimited),
            (VerbatimError.failed(.corrupt, "of the wrong kind"), .fetchFailed),
            (Bug(), .fetchFailed),
        ]
        for (error, kind) in failures {
            let transcripts = try asking { _ in throw error }
            let told = await failure { _ = try await transcripts.transcript(of: link) }
            XCTAssertEqual(told?.kind, kind, told?.sentence ?? "")
        }
    }

    func testWhatIsNonsenseIsAFaultOfItsOwn() async throws {
        let nonsense: [@Sendable (SupplierAsk) -> Transcript] = [
            { Transcript(platform: $0.platform, videoId: "another-one", language: "en", kind: .human, segments: []) },
            { Transcript(platform: $0.platform, videoId: $0.videoId, language: "en", kind: .human, segments: []) },
            {
                Transcript(
                    platform: $0.platform, videoId: $0.videoId, language: "en", kind: .human,
                    segments: [Segment(text: "x", startMs: -1, durationMs: .max)]
                )
            },
        ]
        for make in nonsense {
            let transcripts = try asking { [make($0)] }
            let told = await failure { _ = try await transcripts.transcript(of: link) }
            XCTAssertNotNil(told)
        }
    }

    func testCancellingATaskEndsTheWorkAndTheAppsOwn() async throws {
        let begun = expectation(description: "it was asked")
        let ended = expectation(description: "it was cancelled")
        let transcripts = try asking { _ in
            begun.fulfill()
            do { try await hang() } catch is CancellationError { ended.fulfill() }
            return []
        }
        let work = Task { try await transcripts.transcript(of: link) }
        await fulfillment(of: [begun], timeout: 30)
        work.cancel()
        do {
            _ = try await work.value
            XCTFail("it was cancelled")
        } catch is CancellationError {}
        await fulfillment(of: [ended], timeout: 30)
    }

    func testATaskThatIsCancelledBeforeItBeginsAsksNobody() async throws {
        let transcripts = try asking { _ in
            XCTFail("nobody wants it")
            return []
        }
        let work = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await transcripts.transcript(of: link)
        }
        work.cancel()
        do {
            _ = try await work.value
            XCTFail("it was cancelled")
        } catch is CancellationError {}
    }

    func testEndingAStreamEndsTheWork() async throws {
        let ended = expectation(description: "it was cancelled")
        let transcripts = try asking { ask in
            ask.watcher.stage(name: "reading", done: 0, of: 1)
            do { try await hang() } catch is CancellationError { ended.fulfill() }
            return []
        }
        for try await _ in transcripts.progress(of: link) { break }
        await fulfillment(of: [ended], timeout: 30)
    }

    func testATimeEndsTheWork() async throws {
        let transcripts = try asking { _ in try await hang() }
        let late = await failure { _ = try await transcripts.transcript(of: link, timeout: 0.05) }
        XCTAssertEqual(late?.kind, .timedOut)
        let slow = SupplierChoice.function("mine") { _ in try await hang() }
        let impatient = try Transcripts(options: TranscriptsOptions(suppliers: [slow], supplierTimeout: 0.05))
        let never = await failure { _ = try await impatient.transcript(of: link) }
        XCTAssertEqual(never?.kind, .fetchFailed)
    }

    func testAListenerThatThrowsChangesNothing() async throws {
        final class Deaf: ProgressListener {
            struct Bug: Error {}
            func onStage(stage: Stage) async throws { throw Bug() }
            func onAnswer(answer: Answer) async throws { throw Bug() }
        }
        let transcripts = try asking { [words($0, "done")] }
        let found = try await transcripts.get(link: link, listener: Deaf())
        XCTAssertEqual(found.segments.map(\.text), ["done"])
    }
}
