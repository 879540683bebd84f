import Foundation

extension VerbatimError {
    /// Details of the failure.
    public var failure: Failure {
        switch self {
        case .Failed(let failure): return failure
        }
    }

    /// Kind of the failure.
    public var kind: FailureKind { failure.kind }

    /// The error for a store or model of the app.
    ///
    /// The kinds `unavailable`, `notFound`, `conflict`, `corrupt`, `unsupported` and `invalidInput` stay. `timedOut`,
    /// `rateLimited`, `fetchFailed` and `notConfigured` become `unavailable`. Every other kind becomes `unexpected`.
    public static func failed(_ kind: FailureKind, _ message: String) -> VerbatimError {
        .Failed(failure: Failure(kind: kind, message: message))
    }
}

extension VerbatimError: CustomStringConvertible {
    public var description: String { failure.message }
}

extension SupplyFailure {
    /// The error for a supplier of the app that has no transcript.
    public static func failed(
        _ reason: SupplyReason, _ detail: String, retryAfter: TimeInterval? = nil
    ) -> SupplyFailure {
        .Failed(reason: reason, detail: detail, retryAfter: retryAfter?.clamped)
    }
}

extension SupplyFailure: CustomStringConvertible {
    public var description: String {
        switch self {
        case .Failed(_, let detail, _): return detail
        }
    }
}
