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
    /// Ending the iteration cancels the call.
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
    /// At most `concurrency` links are processed at the same time. A link waits while the sources of its platform are
    /// paused: at most `maxWait` seconds without a success in between, by default 300.
    public func transcripts(
        for links: [String],
        language: String? = nil,
        concurrency: Int = 8,
        maxWait: TimeInterval? = nil
    ) -> AsyncStream<BatchResult> {
        AsyncStream { continuation in
            let task = Task {
                let batch = Batch(maxWait: maxWait?.clamped)
                await withTaskGroup(of: BatchResult.self) { group in
                    var remaining = links.makeIterator()
                    func startNext() -> Bool {
                        guard let link = remaining.next() else { return false }
                        group.addTask { await self.result(for: link, language: language, batch: batch) }
                        return true
                    }
                    for _ in 0..<max(1, concurrency) where !startNext() { break }
                    while let result = await group.next() {
                        continuation.yield(result)
                        _ = startNext()
                    }
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    private func result(for link: String, language: String?, batch: Batch) async -> BatchResult {
        do {
            let transcript = try await self.transcript(of: link, language: language, batch: batch)
            return BatchResult(link: link, transcript: transcript, failure: nil)
        } catch let error as VerbatimError {
            return BatchResult(link: link, transcript: nil, failure: error.failure)
        } catch {
            let failure = Failure(kind: .cancelled, message: "the call was cancelled")
            return BatchResult(link: link, transcript: nil, failure: failure)
        }
    }
}
