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

/// Nobody is asked; one transcript is there.
func shelf(_ options: TranscriptsOptions = TranscriptsOptions(suppliers: [])) async throws -> Transcripts {
    let transcripts = try Transcripts(options: options)
    try await transcripts.import(captions, for: link, language: "en")
    return transcripts
}

/// Transcripts of which this alone is asked.
func asking(_ supply: @escaping @Sendable (SupplierAsk) async throws -> [Transcript]) throws -> Transcripts {
    try Transcripts(options: TranscriptsOptions(suppliers: [.function("mine", supply: supply)]))
}

/// A transcript as a supplier makes it.
func words(_ ask: SupplierAsk, _ text: String) -> Transcript {
    Transcript(
        platform: ask.platform, videoId: ask.videoId, language: ask.language ?? "en", kind: .human,
        segments: [Segment(text: text, startMs: 0, durationMs: 900)]
    )
}

/// How the work fails; nothing where it does not.
func failure(_ work: () async throws -> Void) async -> Failure? {
    do {
        try await work()
        return nil
    } catch {
        return (error as? VerbatimError)?.failure
    }
}

/// Waits for ever, until the task is cancelled.
func hang() async throws -> Never {
    while true { try await Task.sleep(nanoseconds: 60_000_000_000) }
}
