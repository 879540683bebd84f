import Foundation
#if canImport(FoundationNetworking)
// Where Foundation is Swift's own, its HTTP is a module of itself.
import FoundationNetworking
#endif

/// Captions that lie at an address, fetched with the platform's own HTTP: its proxies, its trust and its data saving
/// apply.
public struct URLSessionCaptions: Sendable {
    private let session: URLSession

    public init(session: URLSession = .shared) {
        self.session = session
    }

    /// The segments of the captions at an address.
    ///
    /// - Throws: `SupplyFailure`, as a supplier's function passes it on.
    public func segments(at address: URL) async throws -> [Segment] {
        let (data, response): (Data, URLResponse)
        do {
            (data, response) = try await session.data(from: address)
        } catch {
            throw failure(.unreachable, "The captions could not be fetched: \(error.localizedDescription)")
        }
        switch (response as? HTTPURLResponse)?.statusCode ?? 200 {
        case 200: return try parseCaptions(captions: data)
        case 404, 410: throw failure(.noCaptions, "There are no captions at this address.")
        case 429: throw failure(.throttled, "The platform wants fewer requests.")
        case let status: throw failure(.platformFault, "The platform answered with HTTP \(status).")
        }
    }

    private func failure(_ reason: SupplyReason, _ sentence: String) -> SupplyFailure {
        .Failed(reason: reason, sentence: sentence, retryAfter: nil)
    }
}
