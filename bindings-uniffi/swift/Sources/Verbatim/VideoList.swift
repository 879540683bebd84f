import Foundation

/// The videos of a playlist or channel of YouTube, or of a profile of TikTok, in the order of the list.
///
/// Each page of up to 100 videos is read when the iteration needs it, about a second after the page before. An iteration
/// throws as `Transcripts.videoListPage` does, and `CancellationError` if its task is cancelled.
public struct VideoList: AsyncSequence, Sendable {
    public typealias Element = ListedVideo

    fileprivate let transcripts: Transcripts
    fileprivate let list: String
    fileprivate let tab: ChannelTab?
    fileprivate let limit: Int
    fileprivate let since: Date?

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(videos: self, remaining: limit)
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let videos: VideoList
        fileprivate var remaining: Int
        private var ready: ArraySlice<ListedVideo> = []
        private var position: String?
        private var isEnded = false

        fileprivate init(videos: VideoList, remaining: Int) {
            self.videos = videos
            self.remaining = remaining
        }

        public mutating func next() async throws -> ListedVideo? {
            while ready.isEmpty {
                if isEnded || remaining <= 0 { return nil }
                // A list does not continue after an error.
                isEnded = true
                let (videos, position) = (self.videos, self.position)
                let page = try await cancellable { call in
                    try await videos.transcripts.videoListPage(
                        list: videos.list, tab: videos.tab, position: position,
                        since: videos.since.map { Int64($0.timeIntervalSince1970 * 1_000) }, call: call
                    )
                }
                ready = page.videos[...]
                self.position = page.next
                isEnded = page.next == nil
            }
            if remaining <= 0 { return nil }
            remaining -= 1
            return ready.popFirst()
        }
    }
}

extension Transcripts {
    /// Returns the videos of a playlist or channel of YouTube.
    ///
    /// `list` is the link of a playlist, or of a channel, also with a tab; an id of one; or a handle such as `@name`.
    /// `tab` replaces the tab of a channel. Videos that were surely published before `since` are left out; a channel's
    /// list ends at the first page that ends with one.
    public func videos(
        of list: String,
        tab: ChannelTab? = nil,
        limit: Int = .max,
        since: Date? = nil
    ) -> VideoList {
        VideoList(transcripts: self, list: list, tab: tab, limit: limit, since: since)
    }

    /// Returns the videos that YouTube finds for these words, the best matches first; at most 1,000.
    ///
    /// It searches YouTube, not the archive. It throws without words, and with more than 200 characters.
    public func youtubeSearch(_ words: String, limit: Int = .max, since: Date? = nil) throws -> VideoList {
        let list = try youtubeSearchAddress(words: words)
        return VideoList(transcripts: self, list: list, tab: nil, limit: limit, since: since)
    }
}

extension ListedVideo {
    /// Length in seconds, if known.
    public var duration: TimeInterval? { durationMs.map { TimeInterval($0) / 1_000 } }
}
