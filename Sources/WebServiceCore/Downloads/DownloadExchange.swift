/// One request of a download, and the head of its response.
///
/// It has its own task, because interceptors, redirects and limits apply to each request. The
/// records of that task are added to those of the download.
struct DownloadExchange: Sendable {
    private let exchange: SessionTask
    private let owner: SessionTask
    private let stream: TypedTask<StreamedResponse>

    /// - Parameter bytesPerSecond: The rate limit, so that few bytes wait in memory.
    init(_ owner: SessionTask, _ request: Request, _ plan: DownloadPlan, bytesPerSecond: Int?) {
        var request = request
        for field in plan.headers { request.headers[field.name] = field.value }
        request.options.isStreamed = true
        request.downloadsPart = plan.offset != nil
        self.owner = owner
        exchange = SessionTask(owner.service, request, isListed: false)
        exchange.context.setParent(owner.context.id)
        let bufferSize = min(256 << 10, max(16 << 10, bytesPerSecond.map { $0 / 4 } ?? .max))
        exchange.context.streamBody(bufferSize: bufferSize, batchSize: bufferSize / 2)
        stream = exchange.typed(ResponseRules(.these([200, 203, 206, 416]))) { StreamedResponse($0) }
    }

    /// Sends the request, and returns the response when its head has arrived.
    func response() async throws -> StreamedResponse {
        try await stream.value
    }

    /// Ends the exchange and adds its records. Called once.
    func end() {
        exchange.cancel()
        owner.context.add(exchange.context.record)
    }
}
