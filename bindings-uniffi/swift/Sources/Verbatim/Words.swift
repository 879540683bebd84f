import Foundation

extension VerbatimError {
    /// What failed, and how.
    public var failure: Failure {
        switch self {
        case .Failed(let failure): return failure
        }
    }

    /// What kind of failure it is.
    public var kind: FailureKind { failure.kind }

    /// What a store or a model of the app's throws.
    public static func failed(_ kind: FailureKind, _ sentence: String) -> VerbatimError {
        .Failed(failure: Failure(kind: kind, sentence: sentence))
    }
}

extension VerbatimError: CustomStringConvertible {
    public var description: String { failure.sentence }
}

extension Segment {
    /// When it starts, in seconds from the video's beginning.
    public var start: TimeInterval { TimeInterval(startMs) / 1_000 }

    /// How long it lasts, in seconds.
    public var duration: TimeInterval { TimeInterval(durationMs) / 1_000 }
}

extension Transcript {
    /// Whether a machine made the words.
    public var isGenerated: Bool { kind != .human }

    /// The words as plain prose.
    public func text() throws -> String { try render(transcript: self, format: .text) }

    /// The words as Markdown with times.
    public func markdown() throws -> String { try render(transcript: self, format: .markdown) }

    /// The words as SRT subtitles.
    public func srt() throws -> String { try render(transcript: self, format: .srt) }

    /// The words as WebVTT subtitles.
    public func webVtt() throws -> String { try render(transcript: self, format: .webVtt) }
}

/// A supplier of the app's, as a function.
private final class FunctionSupplier: Supplier, @unchecked Sendable {
    // The function is sendable, and never changes.
    private let function: @Sendable (SupplierAsk) async throws -> [Transcript]

    init(_ function: @escaping @Sendable (SupplierAsk) async throws -> [Transcript]) {
        self.function = function
    }

    func supply(ask: SupplierAsk) async throws -> [Transcript] {
        try await function(ask)
    }
}

extension SupplierChoice {
    /// A supplier of the app's, as a function: it returns transcripts, or throws `SupplyFailure`.
    public static func function(
        _ name: String,
        platforms: [Platform] = [],
        kind: SupplierKind = .captions,
        supply: @escaping @Sendable (SupplierAsk) async throws -> [Transcript]
    ) -> SupplierChoice {
        .own(name: name, platforms: platforms, kind: kind, supplier: FunctionSupplier(supply))
    }
}
