import WebServiceCore

/// The violations that ``StubResponder/verify(inOrder:fileID:filePath:line:column:)`` found.
public struct VerificationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// A difference between the declared stubs and the requests.
    public struct Violation: Sendable, Hashable, CustomStringConvertible {
        /// The kind of a violation.
        public enum Kind: Sendable, Hashable {
            /// A stub that was used less often than declared, or not at all.
            case callCount
            /// A stub that was used after a stub that was declared later.
            case order
            /// A request that no stub matches.
            case unmatchedRequest
        }

        /// The kind of violation.
        public let kind: Kind
        /// The violation as a sentence, without its location.
        public let message: String
        /// The location of the stub, or the location of the verification for a request that matches
        /// no stub.
        public let location: Stub.Location

        /// The file, the line and the message.
        public var description: String { "\(location.text): \(message)" }
    }

    /// The violations: first call counts, then the order, then requests that match no stub.
    public let violations: [Violation]

    /// All violations, one per line.
    public var description: String {
        violations.map(\.description).joined(separator: "\n")
    }
}

extension StubTable {
    /// Returns the violations of the stubs, in the order in which they were declared, and the
    /// requests that match no stub.
    func violations(inOrder: Bool, _ location: Stub.Location) -> [VerificationError.Violation] {
        let (stubs, uses, unmatched) = state.withLock { ($0.stubs, $0.uses, $0.unmatched) }
        var violations = stubs.compactMap { stub in
            stub.countMismatch.map {
                VerificationError.Violation(kind: .callCount, message: "\(stub) \($0)", location: stub.location)
            }
        }
        if inOrder { violations += Self.orderViolations(stubs, uses) }
        violations += unmatched.map {
            VerificationError.Violation(kind: .unmatchedRequest, message: $0, location: location)
        }
        return violations
    }

    private static func orderViolations(_ stubs: [Stub], _ uses: [(request: Int, stub: Stub)])
        -> [VerificationError.Violation]
    {
        var places: [ObjectIdentifier: Int] = [:]
        for (place, stub) in stubs.enumerated() { places[ObjectIdentifier(stub)] = place }
        var last: (place: Int, stub: Stub)?
        var violations: [VerificationError.Violation] = []
        for use in uses.sorted(by: { $0.request < $1.request }) {
            guard let place = places[ObjectIdentifier(use.stub)] else { continue }
            if let last, place < last.place {
                violations.append(
                    VerificationError.Violation(
                        kind: .order, message: "\(use.stub) was used after \(last.stub) (\(last.stub.location.text))",
                        location: use.stub.location))
            } else {
                last = (place, use.stub)
            }
        }
        return violations
    }
}
