/// A table of the report: the requests that each of its clients sends.
struct Table: Sendable {
    var endpoint: Nginx.Endpoint
    var answer: (name: String, length: Int)
    var inFlight: Int
    /// Whether the process of the client runs on one processor core.
    var isOnOneCore = false

    static let all = onAllCores + onOneCore

    private static let onAllCores = Nginx.endpoints.flatMap { endpoint in
        // The cost of TLS does not depend on the body.
        Nginx.answers.filter { !endpoint.isSecure || $0.name == "1 KB" }.flatMap { answer in
            inFlight(endpoint).map { Table(endpoint: endpoint, answer: answer, inFlight: $0) }
        }
    }

    private static let onOneCore = onAllCores.filter { table in
        !table.endpoint.isSecure && table.answer.name == "1 KB" && table.inFlight > 1
    }.map { Table(endpoint: $0.endpoint, answer: $0.answer, inFlight: $0.inFlight, isOnOneCore: true) }

    private static func inFlight(_ endpoint: Nginx.Endpoint) -> [Int] {
        if !endpoint.isSecure { return [1, 16, 64] }
        // Concurrent streams on a connection that closes after one response interfere with each
        // other.
        return endpoint.isHTTP2 && endpoint.closes ? [1] : [1, 16]
    }

    var title: String {
        "\(endpoint.isSecure ? endpoint.name + ", " : "")\(answer.name), \(inFlight) in flight"
            + (isOnOneCore ? ", client on one core" : "")
    }

    /// The tables with which the ranges of ratios are computed.
    var group: String {
        if isOnOneCore { return "HTTP, client on one core" }
        if !endpoint.isSecure { return "HTTP" }
        return endpoint.closes ? "HTTPS, new connections" : "HTTPS, open connections"
    }

    func includes(_ variant: Variant) -> Bool {
        (!endpoint.isSecure || variant.isSecure) && (!isOnOneCore || variant.isOnOneCore)
    }
}
