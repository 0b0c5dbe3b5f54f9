import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The acceptance rules for responses that the typed tasks of one exchange share.
final class ResponseRules: Sendable {
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

    private let rules: Mutex<Rules>

    init(_ statuses: Statuses = .success) {
        rules = Mutex(Rules(statuses: statuses))
    }

    func set(_ change: (inout Rules) -> Void) {
        rules.withLock { change(&$0) }
    }

    /// Returns the response if it is acceptable.
    func accept(_ input: StepInput) throws -> Response {
        if let failure = input.failure { throw failure }
        let response = try input.result.get()
        let rules = rules.withLock { $0 }
        guard rules.statuses.contains(response.status) else {
            throw input.mappedError(for: response)
                ?? input.error(.unacceptableStatus, "the status \(response.status) is not acceptable")
        }
        if let contentTypes = rules.contentTypes, !response.data.isEmpty {
            let type = response.header(.contentType) ?? ""
            guard contentTypes.contains(where: { MediaType.matches(type, pattern: $0) }) else {
                throw input.error(
                    .unexpectedContentType, "the media type '\(MediaType.essence(type))' is not acceptable")
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
        return WebServiceError(
            code, message, request: request, response: response?.urlResponse, body: response?.body,
            underlying: underlying)
    }
}

/// Media types (RFC 9110, section 8.3.1), compared without regard to case and parameters.
enum MediaType {
    /// Returns the type and subtype in lower case, without parameters; at most 80 printable bytes.
    static func essence(_ value: String) -> String {
        let type = String(decoding: value.utf8.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self)
        let text = type.trimmingCharacters(in: .whitespaces).asciiLowercased()
        return String(decoding: text.utf8.prefix(80).filter { $0 > 0x20 && $0 < 0x7F }, as: UTF8.self)
    }

    /// - Parameter pattern: A media type, `type/*` or `*/*`; `application/json` also matches every
    ///   `+json` type.
    static func matches(_ value: String, pattern: String) -> Bool {
        let type = essence(value)
        let pattern = essence(pattern)
        if pattern == "*/*" || type == pattern { return true }
        if pattern.hasSuffix("/*") { return type.hasPrefix(pattern.dropLast()) }
        return pattern == ContentType.json && type.hasSuffix("+json")
    }

    /// Returns the value of a parameter such as `charset`, without quotes.
    static func parameter(_ name: String, of value: String) -> String? {
        for part in value.utf8.split(separator: UInt8(ascii: ";")).dropFirst() {
            let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1).map {
                String(decoding: $0, as: UTF8.self).trimmingCharacters(in: .whitespaces)
            }
            guard pair.count == 2, pair[0].equalsIgnoringASCIICase(name) else { continue }
            return pair[1].trimmingCharacters(in: ["\"", "'"])
        }
        return nil
    }
}
