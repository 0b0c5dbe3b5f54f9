import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Keeps Foundation from acting on answers by itself. It declines what a server asks in a 401, so that the 401 itself is the answer: credentials are sent
/// by us. And it follows no redirect, so that the redirect is the answer: ``RedirectPolicy`` follows.
///
/// On Apple platforms a declined challenge completes with the response. Foundation on Linux ends the task as cancelled instead;
/// then ``rejectedResponse`` holds the response that the server gave.
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
    /// Whether a server asks who the user is, in distinction to one that says who it is itself.
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
