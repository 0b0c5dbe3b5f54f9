import Metrics
import WebServiceCore

extension Observer where Self == MetricsObserver {
    /// Returns an observer that records the duration of each exchange with swift-metrics.
    ///
    /// The timer and its dimensions are those of the OpenTelemetry semantic conventions for HTTP
    /// client metrics, version 1.44. The dimension `url.template` is the path with its
    /// placeholders, so that the number of timers does not grow with the values.
    ///
    /// - Parameter factory: Defaults to the factory of the process.
    public static func swiftMetrics(factory: any MetricsFactory = MetricsSystem.factory) -> MetricsObserver {
        .metrics { metrics in
            guard let request = metrics.exchange.request else { return }
            let url = request.url
            let dimensions: [(String, String?)] = [
                ("http.request.method", request.method.rawValue),
                ("server.address", url?.host()),
                ("server.port", url.map { String($0.port ?? ($0.scheme == "http" ? 80 : 443)) }),
                ("url.template", request.pathTemplate),
                ("http.response.status_code", metrics.status.map { String($0) }),
                ("error.type", metrics.failure ?? metrics.status.flatMap { $0 >= 400 ? String($0) : nil }),
            ]
            Timer(
                label: "http.client.request.duration",
                dimensions: dimensions.compactMap { name, value in value.map { (name, $0) } }, factory: factory
            ).record(duration: metrics.duration)
        }
    }
}
