import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A delegate of a test, which implements only some of the methods.
protocol PartialDelegate: ServicePassthroughDelegate {}

extension PartialDelegate {
    func requestSent(request: URLRequest) {}
    func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?) {}
    func serviceResultFailure(response: URLResponse?, data: Data?, request: URLRequest?, error: any Error) {}
    func updateUIBegin(response: URLResponse?) {}
    func updateUIEnd(response: URLResponse?) {}
    func didFinishCollectingTaskMetrics(
        metrics: ServiceTaskMetrics, request: URLRequest, response: URLResponse?, data: Data?, error: (any Error)?
    ) {}
}
