import XCTest

@testable import Verbatim

/// A server that runs beside the tests, in whose archive is what `captions` says; its address is in VERBATIM_TEST_SERVER.
final class ClientTests: XCTestCase {
    private func address() throws -> String {
        try XCTUnwrap(ProcessInfo.processInfo.environment["VERBATIM_TEST_SERVER"], "which server?")
    }

    private func client() throws -> Client {
        try Client(options: ClientOptions(baseUrl: try address(), key: nil))
    }

    func testLookUps() async throws {
        let client = try client()
        let found = try await client.transcript(for: link)
        XCTAssertEqual(found.transcript?.segments.map(\.text), ["It is so quiet here.", "The café is closed."])
        let none = try await client.transcript(for: "https://youtu.be/aaaaaaaaaaa")
        XCTAssertNil(none.transcript)
        XCTAssertEqual(none.reason, "needs_verification")
        XCTAssertTrue(none.watchUrl.hasSuffix("/watch/video_site/aaaaaaaaaaa"), none.watchUrl)
        let stranger = await failure { _ = try await client.bought(link) }
        XCTAssertEqual(stranger?.kind, .unauthorized)
        let nonsense = await failure { _ = try await client.transcript(for: "no link") }
        XCTAssertEqual(nonsense?.status, 400)
    }

    func testAServerThatIsNone() async throws {
        let nobody = try Client(options: ClientOptions(baseUrl: "http://127.0.0.1:9", retries: 0))
        let unreachable = await failure { _ = try await nobody.transcript(for: link) }
        XCTAssertEqual(unreachable?.kind, .serverUnreachable)
        let wrong = await failure { _ = try Client(options: ClientOptions(baseUrl: "ftp://nowhere")) }
        XCTAssertEqual(wrong?.kind, .invalidInput)
    }

    func testTheServiceWithinTheProcess() async throws {
        let transcripts = try await shelf()
        let found = try await transcripts.service(key: nil).transcript(for: link)
        XCTAssertEqual(found.transcript?.fromCache, true)
    }

    func testCaptionsOverTheSystemsOwnHTTP() async throws {
        let address = try address()
        let transcripts = try asking { ask in
            let at = URL(string: "\(address)/api/transcript?v=\(ask.videoId)&format=srt")
            let segments = try await URLSessionCaptions().segments(at: XCTUnwrap(at))
            return [Transcript(
                platform: ask.platform, videoId: ask.videoId, language: "en", kind: .human, segments: segments
            )]
        }
        let found = try await transcripts.transcript(of: link)
        XCTAssertEqual(found.segments.map(\.start), [1.5, 61])
        let nowhere = try XCTUnwrap(URL(string: "\(address)/nothing"))
        do {
            _ = try await URLSessionCaptions().segments(at: nowhere)
            XCTFail("there is nothing")
        } catch SupplyFailure.Failed(let reason, _, _) {
            XCTAssertEqual(reason, .noCaptions)
        }
    }
}
