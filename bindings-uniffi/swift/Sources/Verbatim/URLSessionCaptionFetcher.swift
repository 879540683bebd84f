import Foundation
#if canImport(FoundationNetworking)
// Outside Apple's systems, Foundation has its HTTP client in a separate module.
import FoundationNetworking
#endif

/// Fetches captions with the system's HTTP stack: its proxies, trusted certificates and data saving apply.
public struct URLSessionCaptionFetcher: Sendable {
    private let session: URLSession

    public init(session: URLSession = .shared) {
        self.session = session
    }

    /// Fetches captions and parses them into segments.
    ///
    /// - Throws: `SupplyFailure`, which a supplier can rethrow.
    public func segments(at address: URL) async throws -> [Segment] {
        let (data, response): (Data, URLResponse)
        do {
            (data, response) = try await session.data(from: address)
        } catch {
            throw failure(.unreachable, "The captions cannot be fetched: \(error.localizedDescription)")
        }
        switch (response as? HTTPURLResponse)?.statusCode ?? 200 {
        case 200: return try parseCaptions(captions: data)
        case 404, 410: throw failure(.noCaptions, "There are no captions at this address.")
        case 429: throw failure(.throttled, "The platform throttles requests.")
        case let status: throw failure(.platformFault, "The platform responded with HTTP \(status).")
        }
    }

    private func failure(_ reason: SupplyReason, _ detail: String) -> SupplyFailure {
        .Failed(reason: reason, detail: detail, retryAfter: nil)
    }
}
