import Foundation

extension Segment {
    /// Start in seconds, from the beginning of the video.
    public var start: TimeInterval { TimeInterval(startMs) / 1_000 }

    /// Duration in seconds.
    public var duration: TimeInterval { TimeInterval(durationMs) / 1_000 }
}

extension Transcript {
    /// Whether the transcript was generated or translated by a machine.
    public var isGenerated: Bool { kind != .human }

    /// The transcript as plain text.
    public func text() throws -> String { try render(transcript: self, format: .text) }

    /// The transcript as Markdown with timestamps.
    public func markdown() throws -> String { try render(transcript: self, format: .markdown) }

    /// The transcript as SRT subtitles.
    public func srt() throws -> String { try render(transcript: self, format: .srt) }

    /// The transcript as WebVTT subtitles.
    public func webVtt() throws -> String { try render(transcript: self, format: .webVtt) }
}
