import Foundation

/// Element of the stream that `updates(of:)` returns.
public enum TranscriptUpdate: Sendable {
    /// The fetch reached a stage.
    case stage(Stage)
    /// The transcript; the last element.
    case done(Transcript)
}

/// Passes stages of a call to a stream.
private final class StreamListener: ProgressListener, @unchecked Sendable {
    // A continuation is thread-safe.
    private let continuation: AsyncThrowingStream<TranscriptUpdate, Error>.Continuation

    init(_ continuation: AsyncThrowingStream<TranscriptUpdate, Error>.Continuation) {
        self.continuation = continuation
    }

    func onStage(stage: Stage) async throws {
        continuation.yield(.stage(stage))
    }

    func onResult(result: BatchResult) async throws {}
}

extension Transcripts {
    /// Returns the progress of a fetch, then the transcript.
    ///
    /// Ending the iteration cancels the call. If the task is cancelled, the stream ends without `.done` and without an
    /// error: call `Task.checkCancellation()` after the loop.
    public func updates(of link: String, language: String? = nil) -> AsyncThrowingStream<TranscriptUpdate, Error> {
        AsyncThrowingStream { continuation in
            let task = Task {
                do {
                    let transcript = try await cancellable { call in
                        try await self.get(
                            link: link, language: language, listener: StreamListener(continuation), call: call
                        )
                    }
                    continuation.yield(.done(transcript))
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// Returns the results of several links when they are complete. A failure is a result.
    ///
    /// At most `concurrency` links are processed at the same time, and a link starts when the result of an earlier one
    /// was taken. A link waits while the sources of its platform are paused: at most `maxWait` seconds without a success
    /// in between, by default 300. Releasing the stream cancels the running links. If the task is cancelled, the stream
    /// ends early without an error.
    public func transcripts(
        for links: [String],
        language: String? = nil,
        otherLanguages: [String] = [],
        translated: Bool = false,
        concurrency: Int = 8,
        maxWait: TimeInterval? = nil
    ) -> AsyncStream<BatchResult> {
        let batch = Batch(maxWait: maxWait?.clamped)
        let results = LinkResults(links: links, concurrency: concurrency) { link in
            try await self.transcript(
                of: link, language: language, otherLanguages: otherLanguages, translated: translated, batch: batch
            )
        }
        return AsyncStream(
            unfolding: { await results.next() },
            onCancel: { Task { await results.cancel() } }
        )
    }
}

/// Results of links. A link starts when the result of an earlier one was taken.
private actor LinkResults {
    private let transcript: @Sendable (String) async throws -> Transcript
    private let concurrency: Int
    private var remaining: ArraySlice<String>
    private var tasks: [Int: Task<Void, Never>] = [:]
    private var lastTask = 0
    private var ready: [BatchResult] = []
    private var waiters: [CheckedContinuation<Void, Never>] = []

    init(
        links: [String],
        concurrency: Int,
        transcript: @escaping @Sendable (String) async throws -> Transcript
    ) {
        self.transcript = transcript
        self.concurrency = max(1, concurrency)
        remaining = links[...]
    }

    deinit {
        for task in tasks.values { task.cancel() }
    }

    /// Returns the next result; `nil` at the end.
    func next() async -> BatchResult? {
        while !Task.isCancelled {
            while tasks.count + ready.count < concurrency, let link = remaining.popFirst() { start(link) }
            if !ready.isEmpty { return ready.removeFirst() }
            if tasks.isEmpty { return nil }
            await withCheckedContinuation { waiters.append($0) }
        }
        return nil
    }

    /// Cancels the running links; starts no other.
    func cancel() {
        remaining = []
        for task in tasks.values { task.cancel() }
    }

    private func start(_ link: String) {
        lastTask += 1
        let number = lastTask
        let transcript = self.transcript
        // A running link does not keep the results alive: they end with the iteration.
        tasks[number] = Task { [weak self] in
            let result: BatchResult
            do {
                result = BatchResult(link: link, transcript: try await transcript(link), failure: nil)
            } catch let error as VerbatimError {
                result = BatchResult(link: link, transcript: nil, failure: error.failure)
            } catch {
                let failure = Failure(kind: .cancelled, message: "the call was cancelled")
                result = BatchResult(link: link, transcript: nil, failure: failure)
            }
            await self?.finish(number, result)
        }
    }

    private func finish(_ number: Int, _ result: BatchResult) {
        tasks[number] = nil
        ready.append(result)
        let waiting = waiters
        waiters = []
        for waiter in waiting { waiter.resume() }
    }
}
