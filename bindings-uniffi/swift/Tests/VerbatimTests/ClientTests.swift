import XCTest

@testable import Verbatim

/// A mailer that keeps its last mail.
private actor RecordingMailer: Mailer {
    private var text = ""

    func send(mail: MailMessage) async throws { text = mail.text }

    /// The token of the mail, when it has arrived.
    func token() async throws -> String {
        while true {
            if let token = text.range(of: "[0-9a-f]{64}", options: .regularExpression) { return String(text[token]) }
            try await Task.sleep(nanoseconds: 10_000_000)
        }
    }
}

/// Client of a server whose archive has `captions`; its address is in VERBATIM_TEST_SERVER.
final class ClientTests: XCTestCase {
    private func address() throws -> String {
        try XCTUnwrap(ProcessInfo.processInfo.environment["VERBATIM_TEST_SERVER"], "VERBATIM_TEST_SERVER is not set")
    }

    private func client() throws -> Client {
        try Client(options: ClientOptions(baseUrl: try address(), key: nil))
    }

    func testClientLooksUpTranscripts() async throws {
        let client = try client()
        let found = try await client.transcript(for: link)
        XCTAssertEqual(found.transcript?.segments.map(\.text), ["It is so quiet here.", "The café is closed."])
        let english = try await client.transcript(for: link, language: "en-GB")
        XCTAssertEqual(english.transcript?.language, "en")
        let german = try await client.transcript(for: link, language: "de")
        XCTAssertNil(german.transcript)
        let none = try await client.transcript(for: "https://youtu.be/aaaaaaaaaaa")
        XCTAssertNil(none.transcript)
        XCTAssertEqual(none.reason, "needs_verification")
        XCTAssertTrue(none.watchUrl.hasSuffix("/watch/video_site/aaaaaaaaaaa"), none.watchUrl)
        let unauthorized = await failure { _ = try await client.buyTranscript(link) }
        XCTAssertEqual(unauthorized?.kind, .unauthorized)
        let invalid = await failure { _ = try await client.transcript(for: "no link") }
        XCTAssertEqual(invalid?.status, 400)
    }

    func testClientReturnsTranscriptsInOrderOfLinks() async throws {
        let links = [link, "no link", "https://youtu.be/aaaaaaaaaaa"]
        let results = try await client().transcripts(for: links, language: "de", otherLanguages: ["en"])
        XCTAssertEqual(results.map(\.link), links)
        XCTAssertEqual(results.map { $0.transcript?.segments.count }, [2, nil, nil])
        XCTAssertEqual(results[1].failure?.status, 400)
        XCTAssertEqual(results[2].failure?.reason, "needs_verification")
    }

    func testTimeoutKeepsCompleteResults() async throws {
        let slow = "https://youtu.be/aaaaaaaaaaa"
        let transcripts = try transcriptsWithSupplier { request in
            if request.videoId == "aaaaaaaaaaa" { try await hang() }
            return [makeTranscript(request, "done")]
        }
        let client = transcripts.service(key: nil)
        let created = try await client.createKey(request: CreateKeyRequest())
        try client.useKey(key: created.key)
        let results = try await client.transcripts(for: [slow, link], timeout: 5)
        XCTAssertEqual(results.map { $0.failure?.kind }, [.timedOut, nil])
    }

    func testIdempotencyKeyChargesLinkOnce() async throws {
        let mailer = RecordingMailer()
        let transcripts = try await archiveWithTranscript(TranscriptsOptions(suppliers: [], mailer: mailer))
        let client = transcripts.service(key: nil)
        _ = try await client.register(email: "ann@example.org")
        let account = try await client.verify(token: mailer.token())
        try client.useKey(key: account.key)
        let before = try await transcripts.grant(email: "ann@example.org", credits: 5, id: "first")
        for _ in 0..<2 {
            let results = try await client.transcripts(for: [link, link], idempotencyKey: "batch-1")
            XCTAssertEqual(results.map { $0.transcript?.segments.count }, [2, 2])
            let after = try await client.me().creditsRemaining
            XCTAssertEqual(after, before - 1)
        }
    }

    func testClientOfInvalidOrUnreachableServerFails() async throws {
        let client = try Client(options: ClientOptions(baseUrl: "http://127.0.0.1:9", retries: 0))
        let unreachable = await failure { _ = try await client.transcript(for: link) }
        XCTAssertEqual(unreachable?.kind, .serverUnreachable)
        let wrong = await failure { _ = try Client(options: ClientOptions(baseUrl: "ftp://nowhere")) }
        XCTAssertEqual(wrong?.kind, .invalidInput)
    }

    func testLocalServiceLooksUpTranscript() async throws {
        let transcripts = try await archiveWithTranscript()
        let found = try await transcripts.service(key: nil).transcript(for: link)
        XCTAssertEqual(found.transcript?.fromCache, true)
        let client = transcripts.service(key: nil)
        let missing = try await client.lookUpText(link: "https://youtu.be/aaaaaaaaaaa", format: .text)
        XCTAssertNil(missing.text)
        XCTAssertEqual(missing.reason, "needs_verification")
    }

    func testCaptionFetcherUsesURLSession() async throws {
        let address = try address()
        let transcripts = try transcriptsWithSupplier { request in
            let url = URL(string: "\(address)/api/transcript?v=\(request.videoId)&format=srt")
            let segments = try await URLSessionCaptionFetcher().segments(at: XCTUnwrap(url))
            return [Transcript(
                platform: request.platform, videoId: request.videoId, language: "en", kind: .human, segments: segments
            )]
        }
        let found = try await transcripts.transcript(of: link)
        XCTAssertEqual(found.segments.map(\.start), [1.5, 61])
        let missing = try XCTUnwrap(URL(string: "\(address)/nothing"))
        do {
            _ = try await URLSessionCaptionFetcher().segments(at: missing)
            XCTFail("the address has no captions")
        } catch SupplyFailure.Failed(let reason, _, _) {
            XCTAssertEqual(reason, .noCaptions)
        }
    }
}
