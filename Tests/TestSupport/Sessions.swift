import Foundation
package import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension StreamingSession {
    /// Creates a task that collects the whole response on the thread of the session.
    package func responseTask(
        request: any URLRequestEncodable, progress: (@Sendable (TransferProgress) -> Void)?,
        completion: @escaping @Sendable (Result<Response, any Error>, TransportMetrics?) -> Void
    ) -> any DataTask {
        streamTask(
            request: request,
            receiver: ResponseReceiver(request, source: responseSource, progress: progress, completion: completion))
    }
}

extension WebService {
    /// Creates a service over a session.
    package convenience init(_ baseURLString: String, session: any Session) {
        self.init(baseURLString: baseURLString)
        self.session = session
    }
}
