import Foundation

extension TimeInterval {
    /// The time from 0 to 1,000,000,000 seconds; 0 if it is not a number.
    ///
    /// The generated code ends the app for a time that is negative, infinite or not a number.
    var clamped: TimeInterval { self > 0 ? Swift.min(self, 1_000_000_000) : 0 }
}

/// Runs a call of the library that ends when the task is cancelled.
///
/// The generated functions do not observe the task, so each call gets a token that the task's cancellation cancels.
func cancellable<Result: Sendable>(
    timeout: TimeInterval? = nil,
    _ call: @Sendable (CallOptions) async throws -> Result
) async throws -> Result {
    let token = CancelToken()
    return try await withTaskCancellationHandler {
        do {
            return try await call(CallOptions(timeout: timeout?.clamped, cancel: token))
        } catch let error as VerbatimError where error.kind == .cancelled && Task.isCancelled {
            throw CancellationError()
        }
    } onCancel: {
        token.cancel()
    }
}

extension Transcripts {
    /// Opens an archive in SQLite files in a folder of the app, created if it does not exist.
    public convenience init(in folder: URL, suppliers: [SupplierSpec]? = nil) throws {
        try self.init(
            options: TranscriptsOptions(storage: .folder(path: folder.path), suppliers: suppliers)
        )
    }

    /// Returns the transcript of a video: archived, or fetched and archived.
    ///
    /// `otherLanguages` are tried in this order if the video has none in `language`. With `translated`, a machine
    /// translation is returned if it has no other transcript in a language. Cancelling the task cancels the call; after
    /// `timeout` seconds it fails as `.timedOut`.
    public func transcript(
        of link: String,
        language: String? = nil,
        otherLanguages: [String] = [],
        translated: Bool = false,
        timeout: TimeInterval? = nil,
        batch: Batch? = nil
    ) async throws -> Transcript {
        try await cancellable(timeout: timeout) { call in
            try await self.get(
                link: link, language: language, call: call, translated: translated, batch: batch,
                otherLanguages: otherLanguages
            )
        }
    }

    /// Returns the archived transcript of a video; `nil` if there is none. It fetches nothing.
    public func archivedTranscript(
        of link: String,
        language: String? = nil,
        otherLanguages: [String] = []
    ) async throws -> Transcript? {
        try await cancellable { call in
            try await self.findArchived(
                link: link, language: language, call: call, otherLanguages: otherLanguages
            )
        }
    }

    /// Returns a page of the archived transcripts: the first one, or that at `next` of the page before.
    public func archivedTranscripts(after cursor: String? = nil, limit: UInt32 = 20) async throws -> ArchivedPage {
        try await cancellable { call in
            try await self.archivedPage(cursor: cursor, limit: limit, call: call)
        }
    }

    /// Returns the tracks of a video: archived ones have a `revision`. A video without known tracks is fetched.
    public func tracks(of link: String, timeout: TimeInterval? = nil) async throws -> [ArchivedTrack] {
        try await cancellable(timeout: timeout) { call in
            try await self.tracks(link: link, call: call)
        }
    }

    /// Fetches a transcript again, and archives it as a new revision if it changed.
    public func refresh(
        _ link: String,
        language: String? = nil,
        translated: Bool = false,
        timeout: TimeInterval? = nil
    ) async throws -> RefreshOutcome {
        try await cancellable(timeout: timeout) { call in
            try await self.refresh(link: link, language: language, call: call, translated: translated)
        }
    }

    /// Imports captions into the archive.
    @discardableResult
    public func `import`(
        _ captions: Data,
        for link: String,
        language: String? = nil
    ) async throws -> ImportOutcome {
        try await cancellable { call in
            try await self.importCaptions(
                request: ImportRequest(link: link, captions: captions, language: language),
                call: call
            )
        }
    }
}
