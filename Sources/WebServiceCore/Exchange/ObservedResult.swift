import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The result of an exchange, with the delegate that validates it and receives its failure and
/// metrics.
///
/// Without a delegate, only the failures are recorded.
struct ObservedResult {
    let result: Result<Response, any Error>
    let delegate: (any ServicePassthroughDelegate)?
    let exchange: ExchangeContext

    var response: Response? { try? result.get() }  // an error has none
    var data: Data? { response?.dataIfDelivered }
    var error: (any Error)? { if case .failure(let error) = result { error } else { nil } }

    /// The response, including one that accompanies an error.
    var urlResponse: URLResponse? {
        switch result {
        case .success(let response): response.urlResponse
        case .failure(let error): (error as? WebServiceError)?.response?.urlResponse
        }
    }

    /// Returns the delegate's error if the delegate rejects the result, and reports the failure.
    func rejection() -> (any Error)? {
        do {
            try notify { try $0.validateResponse(response: urlResponse, data: data, error: error) }
            return nil
        } catch {
            report(error)
            return error
        }
    }

    /// Records that a success has become a failure, and notifies the delegate.
    func report(_ failure: any Error) {
        exchange.record(failure: failure)
        notify {
            $0.serviceResultFailure(response: urlResponse, data: data, request: sentRequest, error: failure)
        }
    }

    /// Passes the metrics to the delegate.
    func reportMetrics() {
        notify {
            let request = sentRequest ?? (exchange.record.request ?? Request(url: "")).urlRequestValue
            $0.didFinishCollectingTaskMetrics(
                metrics: exchange.record.metrics, request: request, response: urlResponse, data: data, error: error)
        }
    }

    /// Calls the delegate, if there is one, for the request of the exchange.
    func notify<Failure: Error>(
        _ call: (any ServicePassthroughDelegate) throws(Failure) -> Void
    ) throws(Failure) {
        guard let delegate else { return }
        let result = DelegateCall.$request.withValue(exchange.record.request) { () -> Result<Void, Failure> in
            do throws(Failure) { return .success(try call(delegate)) } catch { return .failure(error) }
        }
        try result.get()
    }

    /// The request that was sent last; `nil` if none was sent.
    private var sentRequest: URLRequest? { exchange.record.sent?.urlRequestValue }
}
