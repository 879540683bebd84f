import XCTest

@testable import Verbatim

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
