import Foundation

/// Does a call of the library's so that cancelling the task ends it.
///
/// The generated functions do not look at the task's cancellation, so each gets a token, which the task's end cancels.
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
    /// Transcripts that are kept in a folder of the app's, in SQLite files. The folder is made where it is not there.
    public convenience init(in folder: URL, suppliers: [SupplierChoice]? = nil) throws {
        try self.init(
            options: TranscriptsOptions(storage: .folder(path: folder.path), suppliers: suppliers)
        )
    }

    /// The transcript of a video: archived, or fetched and archived.
    ///
    /// Cancelling the task ends the work; after `timeout` seconds it fails as `.timedOut`.
    public func transcript(
        of link: String,
        language: String? = nil,
        timeout: TimeInterval? = nil
    ) async throws -> Transcript {
        try await cancellable(timeout: timeout) { call in
            try await self.get(link: link, language: language, call: call)
        }
    }

    /// Fetches a transcript again, now, and archives it as a new revision when it has changed.
    public func refreshed(
        _ link: String,
        language: String? = nil,
        timeout: TimeInterval? = nil
    ) async throws -> Refreshed {
        try await cancellable(timeout: timeout) { call in
            try await self.refresh(link: link, language: language, call: call)
        }
    }

    /// Takes captions into the archive.
    @discardableResult
    public func `import`(_ captions: Data, for link: String, language: String? = nil) async throws -> Imported {
        try await cancellable { call in
            try await self.importCaptions(
                request: ImportRequest(link: link, captions: captions, language: language),
                call: call
            )
        }
    }

    /// The passages of archived transcripts that have all the words.
    public func passages(
        with query: String,
        language: String? = nil,
        limit: UInt32? = nil
    ) async throws -> [SearchHit] {
        try await cancellable { call in
            try await self.search(query: query, language: language, limit: limit, call: call)
        }
    }

    /// Answers a question about a video from its transcript. Nobody is charged.
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
    /// Looks a transcript up. That there is none is an answer, too.
    public func transcript(for link: String, timeout: TimeInterval? = nil) async throws -> Lookup {
        try await cancellable(timeout: timeout) { call in
            try await self.lookUp(link: link, call: call)
        }
    }

    /// A transcript for credits.
    public func bought(
        _ link: String,
        language: String? = nil,
        idempotencyKey: String? = nil,
        timeout: TimeInterval? = nil
    ) async throws -> Purchase {
        try await cancellable(timeout: timeout) { call in
            try await self.transcript(
                link: link, language: language, idempotencyKey: idempotencyKey, call: call
            )
        }
    }

    /// An answer about a video for a credit.
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
