import CCurl
import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The start and the end of exchanges.
extension CurlEngine {
    func startAdmitted() {
        var hasStarted = false
        while let (transfer, queue) = admission.next() {
            guard let (request, receiver, route) = transfer.begin() else {  // cancelled while it waited
                admission.release(queue)
                continue
            }
            do {
                let handle = try freeHandle(for: request)
                do {
                    try begin(
                        handle,
                        CurlHandle.Exchange(
                            transfer: transfer, request: request, receiver: receiver, queue: queue, route: route))
                    hasStarted = true
                } catch {
                    _ = handle.end()
                    keep(handle)
                    throw error
                }
            } catch {
                admission.release(queue)
                transfer.complete(.failure(error), nil)
            }
        }
        if hasStarted { handleTimeout() }
    }

    /// Returns a handle with the TLS rules of the host.
    ///
    /// The rules of a handle never change, so no option for one host remains set for another.
    private func freeHandle(for request: EncodedRequest) throws -> CurlHandle {
        let index = try rules.index(for: request.url)
        if free.last?.rulesIndex == index, let handle = free.popLast() { return handle }
        if let place = free.lastIndex(where: { $0.rulesIndex == index }) { return free.remove(at: place) }
        return try CurlHandle(self, share: share, rules: index)
    }

    /// Adds a handle to the free ones. If there are too many, the least recently used one is freed.
    func keep(_ handle: CurlHandle) {
        free.append(handle)
        if free.count > 128 { free.remove(at: free.startIndex).free() }
    }

    func begin(_ handle: CurlHandle, _ exchange: CurlHandle.Exchange) throws {
        // The loop's `now` may precede the submission of the request, which would shorten its
        // timeout.
        let start = clock.now
        try handle.begin(exchange, connectTimeout: configuration.connectTimeout, at: start)
        let code = curl_multi_add_handle(multi, handle.easy)
        guard code == CURLM_OK else {
            throw WebServiceError(
                .curl, "libcurl rejected the request: \(String(cString: curl_multi_strerror(code)))")
        }
        busy[ObjectIdentifier(exchange.transfer)] = handle
        if exchange.receiver.mayPause {
            streamCount += 1
            limitConnections()
        }
        if handle.isUploading { uploadCount += 1 }
        expiryInstant = .max
        idleCheckInstant = min(idleCheckInstant, start &+ handle.attempt.idleLimit)
    }

    /// Ends an exchange that libcurl has not completed, and closes its connection unless other
    /// exchanges use it.
    func end(_ handle: CurlHandle, _ error: any Error) {
        guard let exchange = handle.exchange, !handle.attempt.isComplete else { return }
        // libcurl would use a connection again on which it has reset a stream.
        if handle.attempt.connection?.isMultiplexed == true { handle.forbidReuse() }
        ended.append(Ended(transfer: exchange.transfer, result: .failure(error), metrics: handle.metrics()))
        release(handle)
    }

    /// Ends the part of a stream that counts toward the connection limits.
    func releaseCapacity(_ handle: CurlHandle) {
        guard let queue = handle.exchange?.queue else { return }
        handle.exchange?.queue = nil
        admission.release(queue)
    }

    /// Continues an exchange. The closure returns the error that ends the exchange, or `nil`.
    func proceed(_ handle: CurlHandle?, _ action: (CurlHandle) -> (any Error)?) {
        guard let handle else { return }
        if let error = action(handle) {
            end(handle, error)
        } else {
            if handle.isUploading { uploadsToCheck.append(handle) }
            idleCheckInstant = min(idleCheckInstant, now &+ handle.attempt.idleLimit)
        }
    }

    /// Removes a handle from libcurl and returns it to the free handles.
    func release(_ handle: CurlHandle) {
        if handle.isMultiplexed, !handle.attempt.isExclusive { handle.exchange?.queue?.isMultiplexed = true }
        handle.leaveConnection()
        curl_multi_remove_handle(multi, handle.easy)
        releaseCapacity(handle)
        if handle.isUploading { uploadCount -= 1 }
        if let exchange = handle.end() {
            busy[ObjectIdentifier(exchange.transfer)] = nil
            if exchange.receiver.mayPause {
                streamCount -= 1
                limitConnections()
            }
        }
        if handle.mustBeFreed { handle.free() } else { keep(handle) }
        if busy.isEmpty, connections.count > 0 || channels.multi != nil {
            expiryInstant = now.addingSaturated(configuration.idleConnectionLifetime)
        }
    }

    func cancelAll() {
        for transfer in admission.removeWaiting() { transfer.refuse(URLError(.cancelled)) }
        for handle in busy.values { end(handle, URLError(.cancelled)) }
        endAllChannels(URLError(.cancelled))
    }
}
