import XCTest

@testable import Verbatim

let link = "https://youtu.be/dQw4w9WgXcQ"

let captions = Data(
    """
    1
    00:00:01,500 --> 00:00:03,000
    It is so quiet here.

    2
    00:01:01,000 --> 00:01:04,000
    The café is closed.

    """.utf8
)

/// Transcripts without suppliers, with one archived transcript.
func archiveWithTranscript(
    _ options: TranscriptsOptions = TranscriptsOptions(suppliers: [])
) async throws -> Transcripts {
    let transcripts = try Transcripts(options: options)
    try await transcripts.import(captions, for: link, language: "en")
    return transcripts
}

/// Transcripts with one supplier, from a function.
func transcriptsWithSupplier(
    _ supply: @escaping @Sendable (SupplyRequest) async throws -> [Transcript]
) throws -> Transcripts {
    try Transcripts(options: TranscriptsOptions(suppliers: [.function("mine", supply: supply)]))
}

/// A transcript for a request to a supplier.
func makeTranscript(_ request: SupplyRequest, _ text: String) -> Transcript {
    Transcript(
        platform: request.platform, videoId: request.videoId, language: request.language ?? "en", kind: .human,
        segments: [Segment(text: text, startMs: 0, durationMs: 900)]
    )
}

/// The failure of the work; `nil` if it succeeds.
func failure(_ work: () async throws -> Void) async -> Failure? {
    do {
        try await work()
        return nil
    } catch {
        return (error as? VerbatimError)?.failure
    }
}

/// Waits until the task is cancelled.
func hang() async throws -> Never {
    while true { try await Task.sleep(nanoseconds: 60_000_000_000) }
}

/// Number of calls of a supplier.
actor CallCount {
    private(set) var count = 0

    func add() { count += 1 }
}
