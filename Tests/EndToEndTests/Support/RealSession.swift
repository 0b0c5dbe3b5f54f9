import Foundation
import TestSupport
import WebServiceCore
import WebServiceMocking
import WebServiceServer

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

/// The sessions that use the network.
enum RealSession: String, CaseIterable, Sendable {
    case foundationSession, urlSession, sharedURLSession, urlSessionWithDelegate
    #if WEBSERVICE_CURL
    case curlSession
    #endif

    /// One session of each implementation.
    static let allCases = transports.filter { $0 != .sharedURLSession && $0 != .urlSessionWithDelegate }

    /// All sessions, for the rules of credentials and redirects.
    ///
    /// Without those of Foundation if `scripts/test-libcurl` replaces the libcurl of the process,
    /// which they use as well.
    static let transports: [RealSession] = {
        let sessions = [foundationSession, urlSession, sharedURLSession, urlSessionWithDelegate]
        #if WEBSERVICE_CURL
        let isReplaced = ProcessInfo.processInfo.environment["WEBSERVICE_LIBCURL"] != nil
        return isReplaced ? [curlSession] : sessions + [curlSession]
        #else
        return sessions
        #endif
    }()

    /// All sessions but the one with a storage of cookies, which is below the home folder.
    static let withoutCookieStorage = transports.filter { $0 != .sharedURLSession }

    private static let delegated = URLSession(
        configuration: FoundationSession.defaultConfiguration, delegate: FollowingDelegate(), delegateQueue: nil)

    func session() throws -> any Session {
        switch self {
        case .foundationSession: FoundationBacked.foundationSession.session
        case .urlSession: FoundationBacked.urlSession.session
        case .sharedURLSession: URLSession.shared
        case .urlSessionWithDelegate: Self.delegated
        #if WEBSERVICE_CURL
        case .curlSession: try CurlSession()
        #endif
        }
    }

    func service(_ server: MockServer) throws -> WebService {
        WebService(server.baseURLString, session: try session())
    }
}

/// A delegate of a custom `URLSession` that permits every redirect, as Foundation does by default.
private final class FollowingDelegate: NSObject, URLSessionDataDelegate {
    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(request)
    }
}
