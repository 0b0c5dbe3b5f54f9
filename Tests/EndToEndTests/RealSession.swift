import WebServiceCore
import WebServiceMocking

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

/// The sessions that use the network.
enum RealSession: String, CaseIterable, Sendable {
    case foundationSession, urlSession
    #if WEBSERVICE_CURL
    case curlSession
    #endif

    func service(_ server: MockServer) throws -> WebService {
        let service = WebService(baseURLString: server.baseURLString)
        switch self {
        case .foundationSession: service.session = FoundationBacked.foundationSession.session
        case .urlSession: service.session = FoundationBacked.urlSession.session
        #if WEBSERVICE_CURL
        case .curlSession: service.session = try CurlSession()
        #endif
        }
        return service
    }
}
