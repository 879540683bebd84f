import Foundation

/// What a stream of progress tells.
public enum FetchProgress: Sendable {
    /// The fetch has come so far.
    case underway(Stage)
    /// It is there; the last that is told.
    case done(Transcript)
}

/// Hands what a call tells to a stream.
private final class Teller: ProgressListener, @unchecked Sendable {
    // A continuation may be used from any thread.
    private let continuation: AsyncThrowingStream<FetchProgress, Error>.Continuation

    init(_ continuation: AsyncThrowingStream<FetchProgress, Error>.Continuation) {
        self.continuation = continuation
    }

    func onStage(stage: Stage) async throws {
        continuation.yield(.underway(stage))
    }

    func onAnswer(answer: Answer) async throws {}
}

extension Transcripts {
    /// The transcript of a video as a stream: how far the fetch is, then the transcript.
    ///
    /// Ending the iteration ends the work.
    public func progress(of link: String, language: String? = nil) -> AsyncThrowingStream<FetchProgress, Error> {
        AsyncThrowingStream { continuation in
            let work = Task {
                do {
                    let transcript = try await cancellable { call in
                        try await self.get(
                            link: link, language: language, listener: Teller(continuation), call: call
                        )
                    }
                    continuation.yield(.done(transcript))
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in work.cancel() }
        }
    }

    /// The answers of several links as they come, so many at the same time. What fails is an answer, too.
    public func answers(to links: [String], language: String? = nil, atOnce: Int = 8) -> AsyncStream<Answer> {
        AsyncStream { continuation in
            let work = Task {
                await withTaskGroup(of: Answer.self) { group in
                    var waiting = links.makeIterator()
                    func begin() -> Bool {
                        guard let link = waiting.next() else { return false }
                        group.addTask { await self.answer(to: link, language: language) }
                        return true
                    }
                    for _ in 0..<max(1, atOnce) where !begin() { break }
                    while let answer = await group.next() {
                        continuation.yield(answer)
                        _ = begin()
                    }
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in work.cancel() }
        }
    }

    private func answer(to link: String, language: String?) async -> Answer {
        do {
            let transcript = try await self.transcript(of: link, language: language)
            return Answer(link: link, transcript: transcript, failure: nil)
        } catch let error as VerbatimError {
            return Answer(link: link, transcript: nil, failure: error.failure)
        } catch {
            let failure = Failure(kind: .cancelled, sentence: "the call was cancelled")
            return Answer(link: link, transcript: nil, failure: failure)
        }
    }
}
