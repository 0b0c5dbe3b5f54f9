import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A task delegate that prevents Foundation from following redirects and from handling challenges
/// for credentials.
///
/// A redirect is delivered as the response, and ``RedirectPolicy`` follows it. The challenge of a
/// 401 is declined, so the 401 is delivered as the response, and ``Authentication`` can send
/// credentials. If the session has a delegate, that delegate receives the challenge first, and the
/// challenge is declined unless the delegate provides a credential, cancels the challenge, or
/// chooses the default handling of a challenge for which Foundation proposes a credential.
/// Foundation calls the session's delegate for all methods that are not implemented here.
///
/// On Apple platforms, the task of a declined challenge completes with the response. On Linux,
/// Foundation ends the task as cancelled instead; ``rejectedResponse`` is then the server's
/// response.
final class PassiveTaskDelegate: NSObject, URLSessionDataDelegate {
    typealias ChallengeHandler = @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void

    private let rejected = Mutex<URLResponse?>(nil)

    var rejectedResponse: URLResponse? { rejected.withLock { $0 } }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }
}

extension PassiveTaskDelegate {
    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping ChallengeHandler
    ) {
        guard challenge.requestsCredentials else { return completionHandler(.performDefaultHandling, nil) }
        #if canImport(FoundationNetworking)
        if let delegate = session.delegate as? any URLSessionTaskDelegate {
            return delegate.urlSession(session, task: task, didReceive: challenge) { [self] disposition, credential in
                switch disposition {
                case .useCredential where credential != nil, .cancelAuthenticationChallenge:
                    completionHandler(disposition, credential)
                case .performDefaultHandling where challenge.proposedCredential != nil:
                    completionHandler(disposition, nil)
                default:
                    // If there is no credential, Foundation traps or never completes the task.
                    reject(challenge, completionHandler)
                }
            }
        }
        #endif
        reject(challenge, completionHandler)
    }

    private func reject(_ challenge: URLAuthenticationChallenge, _ completionHandler: ChallengeHandler) {
        rejected.withLock { $0 = challenge.failureResponse }
        completionHandler(.rejectProtectionSpace, nil)
    }
}

#if !canImport(FoundationNetworking)
/// A task delegate that prevents Foundation from following redirects. The session's delegate
/// receives the challenges.
final class RedirectDecliner: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }
}
#endif

extension URLAuthenticationChallenge {
    /// Whether the challenge requests the user's credentials, as opposed to trust in the server.
    var requestsCredentials: Bool {
        switch protectionSpace.authenticationMethod {
        case NSURLAuthenticationMethodDefault, NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest,
            NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodHTMLForm, NSURLAuthenticationMethodNegotiate:
            true
        default:
            false
        }
    }
}
