import Foundation

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
            return try await call(CallOptions(timeout: timeout, cancel: token))
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
    /// Cancelling the task cancels the call; after `timeout` seconds it fails as `.timedOut`.
    public func transcript(
        of link: String,
        language: String? = nil,
        timeout: TimeInterval? = nil
    ) async throws -> Transcript {
        try await cancellable(timeout: timeout) { call in
            try await self.get(link: link, language: language, call: call)
        }
    }

    /// Fetches a transcript again, and archives it as a new revision if it changed.
    public func refresh(
        _ link: String,
        language: String? = nil,
        timeout: TimeInterval? = nil
    ) async throws -> RefreshOutcome {
        try await cancellable(timeout: timeout) { call in
            try await self.refresh(link: link, language: language, call: call)
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

    /// Searches archived transcripts for passages with all words.
    public func search(
        _ query: String,
        language: String? = nil,
        limit: UInt32? = nil
    ) async throws -> [SearchHit] {
        try await cancellable { call in
            try await self.search(query: query, language: language, limit: limit, call: call)
        }
    }

    /// Answers a question about a video from its transcript. Free.
    public func answer(
        to question: String,
        about link: String,
        history: [ChatTurn] = [],
        timeout: TimeInterval? = nil
    ) async throws -> ChatAnswer {
        try await cancellable(timeout: timeout) { call in
            try await self.ask(link: link, question: question, history: history, call: call)
        }
    }
}

extension Client {
    /// Looks up a transcript. An unavailable transcript is a normal response with a reason.
    public func transcript(for link: String, timeout: TimeInterval? = nil) async throws -> LookupResponse {
        try await cancellable(timeout: timeout) { call in
            try await self.lookUp(link: link, call: call)
        }
    }

    /// Buys a transcript for credits.
    public func buyTranscript(
        _ link: String,
        language: String? = nil,
        idempotencyKey: String? = nil,
        timeout: TimeInterval? = nil
    ) async throws -> PurchasedTranscript {
        try await cancellable(timeout: timeout) { call in
            try await self.transcript(
                link: link, language: language, idempotencyKey: idempotencyKey, call: call
            )
        }
    }

    /// Buys an answer about a video for one credit.
    public func answer(
        to message: String,
        about videoId: String,
        history: [ChatTurn] = [],
        idempotencyKey: String? = nil,
        timeout: TimeInterval? = nil
    ) async throws -> ChatAnswer {
        try await cancellable(timeout: timeout) { call in
            try await self.chat(
                videoId: videoId, message: message, history: history,
                idempotencyKey: idempotencyKey, call: call
            )
        }
    }
}
