import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What came of an exchange. An object, because it is handed on many times and made once.
final class Outcome: Sendable {
    let data: Data?
    let head: Head
    let error: (any Error)?
    let source: Response.Source
    let redirects: [URL]
    let attempts: Int
    let transport: TransportMetrics?
    let age: TimeInterval?

    init(
        data: Data? = nil, head: Head = .none, error: (any Error)? = nil, source: Response.Source = .network, redirects: [URL] = [],
        attempts: Int = 1, transport: TransportMetrics? = nil, age: TimeInterval? = nil
    ) {
        self.data = data
        self.head = head
        self.error = error
        self.source = source
        self.redirects = redirects
        self.attempts = attempts
        self.transport = transport
        self.age = age
    }

    /// The head as Foundation knows it.
    var response: URLResponse? { head.urlResponse }

    /// The same for a task that waited for somebody else's exchange.
    var joined: Outcome {
        Outcome(data: data, head: head, error: error, source: .joined, redirects: redirects, attempts: attempts, transport: transport, age: age)
    }

    /// Stands for the outcome where there is none yet.
    static let none = Outcome()
}

extension Response {
    init(_ outcome: Outcome) {
        self.init(
            data: outcome.data ?? Data(), head: outcome.head, source: outcome.source, attempts: outcome.attempts,
            redirects: outcome.redirects, transport: outcome.transport
        )
        age = outcome.age
    }
}

extension Outcome {
    convenience init(_ response: Response) {
        self.init(
            data: response.data, head: response.head, source: response.source, redirects: response.redirects,
            attempts: response.attempts, transport: response.transport, age: response.age
        )
    }
}

/// What is under way and can be cancelled.
enum Transport: Sendable {
    case preparation(Task<Void, Never>)
    case exchange(any DataTask)

    func cancel() {
        switch self {
        case .preparation(let task): task.cancel()
        case .exchange(let task): task.cancel()
        }
    }
}

extension Outcome {
    /// What a session handed back. An error that Foundation counts as a transport error is a `URLError` from here on; an answer with nothing
    /// in it is one as well, because no server gave it.
    convenience init(transported data: Data?, _ response: URLResponse?, _ error: (any Error)?, _ redirects: [URL], _ source: Response.Source) {
        let attempts = redirects.count + 1
        if let error {
            self.init(error: URLError(transport: error) ?? error, redirects: redirects, attempts: attempts)
        } else if data == nil, response == nil {
            self.init(error: URLError(.badServerResponse), redirects: redirects, attempts: attempts)
        } else {
            self.init(data: data, head: Head(response), source: source, redirects: redirects, attempts: attempts)
        }
    }

    /// What a session that gives whole responses handed back.
    convenience init(transported result: Result<Response, any Error>, _ transport: TransportMetrics?, _ redirects: [URL]) {
        let attempts = redirects.count + 1
        switch result {
        case .success(let response):
            self.init(
                data: response.data, head: response.head, source: response.source, redirects: redirects, attempts: attempts,
                transport: transport ?? response.transport, age: response.age
            )
        case .failure(let error):
            self.init(error: URLError(transport: error) ?? error, redirects: redirects, attempts: attempts, transport: transport)
        }
    }
}

extension URLError {
    /// The error as a `URLError` without the failing URL, which may hold secrets; `nil` when it is of another domain.
    init?(transport error: any Error) {
        if error is CancellationError {
            self.init(.cancelled)
            return
        }
        let error = error as NSError
        let code: Code? = error.domain == NSPOSIXErrorDomain ? Self.code(posix: error.code) : Code(rawValue: error.code)
        guard error.domain == NSURLErrorDomain || error.domain == NSPOSIXErrorDomain, let code else { return nil }
        self.init(code, userInfo: [NSLocalizedDescriptionKey: error.localizedDescription])
    }

    private static func code(posix code: Int) -> Code {
        switch POSIXErrorCode(rawValue: Int32(truncatingIfNeeded: code)) {
        case .ECONNREFUSED, .EHOSTUNREACH, .EHOSTDOWN: .cannotConnectToHost
        case .ECONNRESET, .EPIPE, .ECONNABORTED, .ENOTCONN: .networkConnectionLost
        case .ETIMEDOUT: .timedOut
        case .ENETUNREACH, .ENETDOWN: .notConnectedToInternet
        case .ECANCELED: .cancelled
        default: .unknown
        }
    }
}
