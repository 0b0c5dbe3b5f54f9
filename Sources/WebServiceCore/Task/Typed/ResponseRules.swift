import Foundation
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The rules by which the typed tasks of one exchange accept its response.
struct ResponseRules: ~Copyable, Sendable {
    struct Rules: Sendable {
        var statuses = Statuses.success
        var contentTypes: [String]?
        var checks: [@Sendable (Response) throws -> Void] = []
    }

    enum Statuses: Sendable {
        /// 200 to 299.
        case success
        case these(Set<Int>)
        case any

        func contains(_ status: Int) -> Bool {
            switch self {
            case .success: (200...299).contains(status)
            case .these(let statuses): statuses.contains(status)
            case .any: true
            }
        }
    }

    /// The changed rules; most tasks change none.
    private final class Changes: Sendable {
        let rules: Mutex<Rules>
        init(_ rules: Rules) { self.rules = Mutex(rules) }
    }

    private let initial: Rules
    private let changes = AtomicLazyReference<Changes>()

    init(_ statuses: Statuses) {
        initial = Rules(statuses: statuses)
    }

    func set(_ change: (inout Rules) -> Void) {
        let changes = changes.load() ?? changes.storeIfNil(Changes(initial))
        changes.rules.withLock { change(&$0) }
    }

    /// Returns the response if it is acceptable.
    func accept(_ input: StepInput) throws -> Response {
        let rules = changes.load()?.rules.withLock { $0 } ?? initial
        if let failure = input.failure {
            guard case .failure = input.result, let response = (failure as? WebServiceError)?.incompleteResponse,
                !rules.statuses.contains(response.status)
            else { throw failure }
            throw input.mappedError(for: response) ?? failure
        }
        let response = try input.result.get()
        guard rules.statuses.contains(response.status) else {
            throw input.mappedError(for: response)
                ?? input.error(
                    .unacceptableStatus,
                    "the status \(response.status) is not acceptable"
                        + (response.status == 407 ? "; set the user and the password that the proxy requires" : ""),
                    underlying: response.bodyFailure)
        }
        if let contentTypes = rules.contentTypes, !response.data.isEmpty {
            let type = response.header(.contentType) ?? ""
            guard contentTypes.contains(where: { MediaType.matches(type, pattern: $0) }) else {
                throw input.error(
                    .unexpectedContentType,
                    "the media type '\(MediaType.essence(type))' is not acceptable; "
                        + "accept it with validate(contentTypes:)")
            }
        }
        for check in rules.checks { try check(response) }
        return response
    }
}

extension StepInput {
    /// Returns an error with the request and response of the exchange.
    func error(_ code: WebServiceError.Code, _ message: String, underlying: (any Error)? = nil) -> WebServiceError {
        let response = try? result.get()  // an error of the exchange has no response
        return WebServiceError(code, message, request: request, response: response, underlying: underlying)
    }
}
