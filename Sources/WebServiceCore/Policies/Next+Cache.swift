package import Foundation

/// The properties of an exchange that an HTTP cache requires.
extension Next {
    /// Whether the body is read while it arrives.
    package var isStreamed: Bool { task.isStreamed }

    /// The header fields of the request that was sent last; `nil` before the first request.
    package var sentHeaders: Headers? { task.log.sent?.headers }

    /// The requests of the exchange that received a response, including redirects, and the heads of
    /// these responses.
    package var receivedHeads: [(request: EncodedRequest, head: ResponseHead)] {
        task.log.entries.compactMap { entry in
            entry.attempt.flatMap { attempt in attempt.head.map { (attempt.request, $0) } }
        }
    }

    /// Returns the cookies that the cookie jar of the service adds to a request.
    package func cookies(for url: URL) -> String? { exchange.setup.cookieJar?.header(for: url, clock) }

    /// Returns whether the session may add credentials to a request.
    package func sessionAddsCredentials(to url: URL) -> Bool {
        exchange.setup.session.addsCredentials(to: url)
    }

    /// Returns whether an account is the one for which the exchange was begun.
    ///
    /// The first account that is passed becomes the account of the exchange.
    ///
    /// - Parameters:
    ///   - account: The name of the account; `nil` if there is none.
    ///   - owner: The object that defines the account.
    /// - Throws: `URLError.cancelled` if the account is a different one and the exchange runs in
    ///   the background.
    package func isOf(account: String?, by owner: AnyObject) throws -> Bool {
        let name = account.map { Array($0.utf8) }
        switch task.account(ObjectIdentifier(owner), .named(name)) {
        case .named(name), .background(name): return true
        case .background: throw URLError(.cancelled)
        case .named, .afterLogOuts: return false
        }
    }

    /// Sends the request of the exchange again in the background. The request has a separate
    /// exchange with its own deadline and the whole pipeline of the service, because this exchange
    /// ends earlier. The body of a streamed response is read only if an interceptor copies it.
    ///
    /// - Parameters:
    ///   - account: The account to which the request belongs; `nil` if there is none.
    ///   - owner: The object that defines the account.
    ///   - change: A closure that changes the request.
    ///   - completion: A closure that is called once when the request has ended, or if there is no
    ///     request.
    package func sendAgain(
        account: String?, of owner: any AnyObject & Sendable, _ change: (inout Request) -> Void,
        completion: @escaping @Sendable () -> Void
    ) {
        guard var request = task.log.request else { return completion() }
        change(&request)
        request.options.scopeDeadline = nil  // the scope belongs to the caller
        let (service, substitution, isStreamed) = (task.service, task.substitution, isStreamed)
        Task(executorPreference: service.clock.executor) { [request, id = task.exchangeID] in
            let task = SessionTask(service, request, over: substitution)
            task.setParent(id)
            // The credentials that the request already carries belong to this account.
            _ = task.account(ObjectIdentifier(owner), .background(account.map { Array($0.utf8) }))
            await DeadlineScope.$current.withValue(nil) {
                if isStreamed { await task.copyBody() } else { _ = await task.outcome() }
            }
            completion()
        }
    }
}
