import Foundation

/// The videos of the archive whose transcripts match a query, with their best moments.
///
/// Each page is read when the iteration needs it. An iteration throws as `Transcripts.searchVideosPage` does, and
/// `CancellationError` if its task is cancelled.
public struct VideoSearch: AsyncSequence, Sendable {
    public typealias Element = VideoHit

    fileprivate let transcripts: Transcripts
    fileprivate let query: String
    fileprivate let language: String?
    fileprivate let platform: Platform?
    fileprivate let sort: SearchSort
    fileprivate let pageSize: Int

    /// The first page, with the number of all matching videos, and a suggestion if there are none.
    public func firstPage() async throws -> VideoSearchPage {
        try await page(at: nil)
    }

    fileprivate func page(at cursor: String?) async throws -> VideoSearchPage {
        try await cancellable { call in
            try await transcripts.searchVideosPage(
                query: query, language: language, platform: platform, sort: sort,
                limit: UInt32(clamping: pageSize), cursor: cursor, call: call
            )
        }
    }

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(search: self)
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let search: VideoSearch
        private var ready: ArraySlice<VideoHit> = []
        private var cursor: String?
        private var isEnded = false

        fileprivate init(search: VideoSearch) {
            self.search = search
        }

        public mutating func next() async throws -> VideoHit? {
            while ready.isEmpty {
                if isEnded { return nil }
                // A search does not continue after an error.
                isEnded = true
                let page = try await search.page(at: cursor)
                ready = page.hits[...]
                cursor = page.next
                isEnded = page.next == nil
            }
            return ready.popFirst()
        }
    }
}

extension Transcripts {
    /// Finds the videos of the archive whose transcripts match, with their best moments.
    ///
    /// All words must occur, in any order and form. `"exact phrase"`, `-not`, `OR`, `prefix*`, `lang:`, `platform:`,
    /// `channel:`, `before:` and `after:` narrow the search; anything malformed is searched as words. `pageSize` hits,
    /// from 1 to 100, are read at a time. The first search of an archive builds its index, which later ones update.
    public func searchVideos(
        _ query: String,
        language: String? = nil,
        platform: Platform? = nil,
        sort: SearchSort = .relevance,
        pageSize: Int = 20
    ) -> VideoSearch {
        VideoSearch(
            transcripts: self, query: query, language: language, platform: platform, sort: sort,
            pageSize: pageSize
        )
    }
}

extension VideoMoment {
    /// Start in seconds.
    public var start: TimeInterval { TimeInterval(startMs) / 1_000 }

    /// End in seconds.
    public var end: TimeInterval { TimeInterval(endMs) / 1_000 }

    /// The matches, as ranges of the text.
    public var matchRanges: [Range<String.Index>] {
        let scalars = text.unicodeScalars
        let index = { (offset: UInt32) in
            scalars.index(scalars.startIndex, offsetBy: Int(offset), limitedBy: scalars.endIndex)
                ?? scalars.endIndex
        }
        return matches.map { index($0.start)..<index($0.end) }
    }
}
