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
    public static func failed(_ kind: FailureKind, _ message: String) -> VerbatimError {
        .Failed(failure: Failure(kind: kind, message: message))
    }
}

extension VerbatimError: CustomStringConvertible {
    public var description: String { failure.message }
}
