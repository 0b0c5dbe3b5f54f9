import Foundation
package import WebServiceCore
package import WebServiceEndpoints

/// An endpoint under the control of the test, which records requests and responds on demand.
package final class HandEndpoint: ServiceEndpoint {
    package final class Fetch: Sendable {
        package let request: any ServiceRequest
        package let id: UInt64
        private let state = Mutex<(waiter: CheckedContinuation<any RawDataSource, any Error>?, wasCancelled: Bool)>(
            (nil, false))

        package init(_ request: any ServiceRequest, _ id: UInt64) {
            self.request = request
            self.id = id
        }

        package var wasCancelled: Bool { state.withLock { $0.wasCancelled } }

        package func respond(_ text: String) { resume(.success(Data(text.utf8))) }
        package func respond(_ data: any RawDataSource) { resume(.success(data)) }
        package func fail(_ error: any Error) { resume(.failure(error)) }

        fileprivate func wait(_ continuation: CheckedContinuation<any RawDataSource, any Error>) {
            state.withLock { $0.waiter = continuation }
        }

        fileprivate func cancel(_ isHeeded: Bool) {
            state.withLock { $0.wasCancelled = true }
            if isHeeded { resume(.failure(CancellationError())) }
        }

        private func resume(_ result: sending Result<any RawDataSource, any Error>) {
            let waiter = state.withLock { state in
                defer { state.waiter = nil }
                return state.waiter
            }
            waiter?.resume(with: result)
        }
    }

    package let fetches = Collected<Fetch>()
    package let cancels = Collected<UInt64>()
    private let heedsCancel: Bool
    private let processing: @Sendable (String, _ isFromStorage: Bool) async throws -> any Sendable

    /// - Parameters:
    ///   - heedsCancel: A Boolean value that indicates whether a cancelled fetch ends.
    ///   - processing: Creates the value from the fetched string.
    package init(
        heedsCancel: Bool = true,
        processing: @escaping @Sendable (String, _ isFromStorage: Bool) async throws -> any Sendable = { text, _ in text
        }
    ) {
        self.heedsCancel = heedsCancel
        self.processing = processing
    }

    package func supports(_ request: any ServiceRequest) -> Bool { true }

    package func fetch(_ request: any ServiceRequest, in context: EndpointContext) async throws -> any RawDataSource {
        let fetch = Fetch(request, context.id)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                fetch.wait(continuation)
                fetches.add(fetch)
                if Task.isCancelled { fetch.cancel(heedsCancel) }
            }
        } onCancel: {
            fetch.cancel(heedsCancel)
            cancels.add(fetch.id)
        }
    }

    package func process(
        _ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool
    ) async throws -> any Sendable {
        try await processing(String(decoding: rawData.rawData ?? Data(), as: UTF8.self), isFromStorage)
    }
}
