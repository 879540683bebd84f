/// A supplier of the app, from a function.
private final class FunctionSupplier: Supplier, @unchecked Sendable {
    // The function is sendable and never changes.
    private let function: @Sendable (SupplyRequest) async throws -> [Transcript]

    init(_ function: @escaping @Sendable (SupplyRequest) async throws -> [Transcript]) {
        self.function = function
    }

    func supply(request: SupplyRequest) async throws -> [Transcript] {
        try await function(request)
    }
}

extension SupplierSpec {
    /// A supplier of the app, from a function that returns transcripts or throws `SupplyFailure`.
    public static func function(
        _ name: String,
        platforms: [Platform] = [],
        kind: SupplierKind = .captions,
        supply: @escaping @Sendable (SupplyRequest) async throws -> [Transcript]
    ) -> SupplierSpec {
        .custom(name: name, platforms: platforms, kind: kind, supplier: FunctionSupplier(supply))
    }
}
