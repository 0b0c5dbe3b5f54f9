import Foundation
import WebServiceCore

/// A tool of a server.
struct Tool: Hashable, Sendable {
    let name: String
    let description: String
    let inputSchema: JSONValue
    /// Whether a call may be sent again, because a second one has no further effect.
    let isRepeatable: Bool

    /// Creates a tool from the description of the server; `nil` if it has no name.
    init?(_ json: JSONValue) {
        guard let name = json["name"]?.string else { return nil }
        self.name = name
        description = json["description"]?.string ?? json["title"]?.string ?? ""
        inputSchema = json["inputSchema"] ?? [:]
        let hints = json["annotations"]
        isRepeatable = hints?["readOnlyHint"]?.bool == true || hints?["idempotentHint"]?.bool == true
    }

    /// Returns the arguments of a call for words such as `count=2`.
    ///
    /// An argument whose type is not `string` is JSON.
    func arguments(_ words: some Sequence<String>) throws -> JSONValue {
        let properties = inputSchema["properties"]?.object ?? [:]
        let allowsOthers = inputSchema["additionalProperties"].map { $0.bool != false } ?? false
        var values: [String: JSONValue] = [:]
        for word in words {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2 else { throw Failure.usage("'\(word)' is not of the form NAME=VALUE") }
            guard allowsOthers || properties[parts[0]] != nil else {
                let names = properties.isEmpty ? "none" : properties.keys.sorted().joined(separator: ", ")
                throw Failure.usage("\(name) has no argument '\(parts[0])'; its arguments are: \(names)")
            }
            let json = try? JSONDecoder().decode(JSONValue.self, from: Data(parts[1].utf8))  // otherwise a string
            let isString = properties[parts[0]]?["type"]?.string == "string"
            values[parts[0]] = isString ? .string(parts[1]) : json ?? .string(parts[1])
        }
        for case let required? in inputSchema["required"]?.array?.map(\.string) ?? [] where values[required] == nil {
            throw Failure.usage("\(name) needs the argument '\(required)'")
        }
        return .object(values)
    }
}

/// An error that the server reports in a message.
struct RemoteError: Error, Hashable {
    let code: Int
    let message: String

    init(_ json: JSONValue?) {
        code = json?["code"]?.int ?? 0
        message = json?["message"]?.string ?? "neither a result nor an error"
    }
}

/// The server does not have the session (any more), so it has not processed the request.
struct SessionEnded: Error {}

/// The connection was lost, and with it the result. The server may have processed the request.
struct ResultUnknown: Error {
    var underlying: (any Error)?
}

/// A request has taken too long.
struct TimedOut: LocalizedError {
    let timeout: Duration

    var errorDescription: String? { "the server has not responded within \(timeout)" }
}
