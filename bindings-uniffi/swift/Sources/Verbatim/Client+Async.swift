import Foundation

extension Transcripts {
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
    public func transcript(
        for link: String,
        language: String? = nil,
        otherLanguages: [String] = [],
        timeout: TimeInterval? = nil,
        batch: Batch? = nil
    ) async throws -> LookupResponse {
        try await cancellable(timeout: timeout) { call in
            try await self.lookUp(
                link: link, call: call, language: language, batch: batch, otherLanguages: otherLanguages
            )
        }
    }

    /// Returns the transcripts of several videos in the order of the links. A failure is a result.
    ///
    /// With the key of an account the transcripts are bought: only of YouTube, and without a language in English.
    /// Otherwise they are looked up. At most `concurrency` links are requested at the same time, and a repeated link
    /// once. They wait while the server refuses calls, as `batch` says.
    ///
    /// After `timeout` seconds, the links that are not complete have failed as `.timedOut`. A cancelled task throws;
    /// `listener` has received what was complete. The server may charge purchases that were sent, also those that have
    /// timed out, and it charges a repeat again unless both calls have the same `idempotencyKey`.
    public func transcripts(
        for links: [String],
        language: String? = nil,
        otherLanguages: [String] = [],
        concurrency: UInt32 = 8,
        timeout: TimeInterval? = nil,
        batch: Batch? = nil,
        listener: ProgressListener? = nil,
        idempotencyKey: String? = nil
    ) async throws -> [BatchResult] {
        try await cancellable(timeout: timeout) { call in
            try await self.getMany(
                links: links, language: language, concurrency: concurrency, listener: listener, call: call,
                batch: batch, otherLanguages: otherLanguages, idempotencyKey: idempotencyKey
            )
        }
    }

    /// Buys a transcript for credits.
    public func buyTranscript(
        _ link: String,
        language: String? = nil,
        idempotencyKey: String? = nil,
        timeout: TimeInterval? = nil,
        batch: Batch? = nil
    ) async throws -> PurchasedTranscript {
        try await cancellable(timeout: timeout) { call in
            try await self.transcript(
                link: link, language: language, idempotencyKey: idempotencyKey, call: call, batch: batch
            )
        }
    }

    /// Buys an answer about a video for one credit.
    public func answer(
        to message: String,
        about link: String,
        history: [ChatTurn] = [],
        idempotencyKey: String? = nil,
        timeout: TimeInterval? = nil
    ) async throws -> ChatAnswer {
        try await cancellable(timeout: timeout) { call in
            try await self.chat(
                link: link, message: message, history: history,
                idempotencyKey: idempotencyKey, call: call
            )
        }
    }
}
