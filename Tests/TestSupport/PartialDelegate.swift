package import Foundation
package import WebServiceCore

#if canImport(FoundationNetworking)
package import FoundationNetworking
#endif

/// A delegate of a test, which implements only some of the methods.
package protocol PartialDelegate: ServicePassthroughDelegate {}

extension PartialDelegate {
    package func requestSent(request: URLRequest) {}
    package func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?) {}
    package func serviceResultFailure(response: URLResponse?, data: Data?, request: URLRequest?, error: any Error) {}
    package func updateUIBegin(response: URLResponse?) {}
    package func updateUIEnd(response: URLResponse?) {}
    package func didFinishCollectingTaskMetrics(
        metrics: ServiceTaskMetrics, request: URLRequest, response: URLResponse?, data: Data?, error: (any Error)?
    ) {}
}
