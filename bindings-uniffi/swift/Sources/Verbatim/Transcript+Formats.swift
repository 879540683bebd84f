import Foundation

extension Segment {
    /// Start in seconds, from the beginning of the video.
    public var start: TimeInterval { TimeInterval(startMs) / 1_000 }

    /// Duration in seconds.
    public var duration: TimeInterval { TimeInterval(durationMs) / 1_000 }

    /// End in seconds, from the beginning of the video.
    public var end: TimeInterval { start + duration }
}

extension Word {
    /// Start in seconds, from the beginning of the video.
    public var start: TimeInterval { TimeInterval(startMs) / 1_000 }

    /// Duration in seconds.
    public var duration: TimeInterval { TimeInterval(durationMs) / 1_000 }

    /// End in seconds, from the beginning of the video.
    public var end: TimeInterval { start + duration }
}

extension Chapter {
    /// Start in seconds, from the beginning of the video.
    public var start: TimeInterval { TimeInterval(startMs) / 1_000 }
}

extension Chunk {
    /// Start in seconds, from the beginning of the video.
    public var start: TimeInterval { TimeInterval(startMs) / 1_000 }

    /// End in seconds, from the beginning of the video.
    public var end: TimeInterval { TimeInterval(endMs) / 1_000 }
}

extension VideoMetadata {
    /// When the video was published, if known.
    public var published: Date? { publishedAt.map { Date(timeIntervalSince1970: TimeInterval($0) / 1_000) } }
}

extension TrackInfo {
    /// Name of the track, or the English name of its language.
    public var displayName: String { name ?? (try? languageName(language: language)) ?? language }
}

extension Transcript {
    /// Length of the video in seconds, if known.
    public var duration: TimeInterval? { durationMs.map { TimeInterval($0) / 1_000 } }

    /// Chapters of the video, ordered by start.
    public var chapters: [Chapter] { metadata.chapters }

    /// Whether the transcript was generated or translated by a machine.
    public var isGenerated: Bool { kind != .human }

    /// Splits the transcript into chunks that last about `size` seconds; `overlap` is repeated at the beginning of the
    /// next one.
    public func chunks(size: TimeInterval, overlap: TimeInterval = 0) throws -> [Chunk] {
        try chunksByTime(transcript: self, size: size.clamped, overlap: overlap.clamped)
    }

    /// Splits the transcript into pages of at most `maxChars` characters: every segment is in one page.
    public func pages(maxChars: UInt32 = 20_000) throws -> [Chunk] {
        try pagesByChars(transcript: self, maxChars: maxChars)
    }

    /// The transcript as plain text.
    public func text() throws -> String { try render(transcript: self, format: .text) }

    /// The transcript as Markdown with timestamps.
    public func markdown() throws -> String { try render(transcript: self, format: .markdown) }

    /// The transcript as SRT subtitles.
    public func srt() throws -> String { try render(transcript: self, format: .srt) }

    /// The transcript as WebVTT subtitles.
    public func webVtt() throws -> String { try render(transcript: self, format: .webVtt) }
}
