import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Prevents Foundation from handling challenges and redirects.
///
/// It declines the challenge of a 401, so that the 401 is the response: ``Authentication`` sends
/// credentials. It follows no redirect, so that the redirect is the response: ``RedirectPolicy``
/// follows it.
///
/// On Apple platforms a declined challenge completes with the response. Foundation on Linux ends
/// the task as cancelled instead; ``rejectedResponse`` is then the server's response.
final class PassiveTaskDelegate: NSObject, URLSessionTaskDelegate {
    private let rejected = Mutex<URLResponse?>(nil)

    var rejectedResponse: URLResponse? { rejected.withLock { $0 } }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        if challenge.asksForCredentials {
            rejected.withLock { $0 = challenge.failureResponse }
            completionHandler(.rejectProtectionSpace, nil)
        } else {
            completionHandler(.performDefaultHandling, nil)
        }
    }
}

extension PassiveTaskDelegate {
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

extension URLAuthenticationChallenge {
    /// A Boolean value that indicates whether the challenge requests the user's credentials, as
    /// opposed to trust in the server.
    var asksForCredentials: Bool {
        switch protectionSpace.authenticationMethod {
        case NSURLAuthenticationMethodDefault, NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest,
            NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodHTMLForm, NSURLAuthenticationMethodNegotiate:
            true
        default:
            false
        }
    }
}
