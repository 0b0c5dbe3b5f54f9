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
            // The last wait may have ended before the request was submitted. The request's timeout
            // would then be too short.
            if !hasStarted { now = clock.now }
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
                    _ = handle.takeExchange()
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

    /// Adds a handle to the free handles. If there are too many, the least recently used one is
    /// freed.
    func keep(_ handle: CurlHandle) {
        free.append(handle)
        if free.count > 128 { free.remove(at: free.startIndex).free() }
    }

    func begin(_ handle: CurlHandle, _ exchange: CurlHandle.Exchange) throws {
        try handle.begin(exchange, connectTimeout: configuration.connectTimeout, at: now)
        let code = curl_multi_add_handle(multi, handle.easy)
        guard code == CURLM_OK else {
            throw WebServiceError(
                .curl, "libcurl rejected the request: \(String(cString: curl_multi_strerror(code)))")
        }
        exchange.transfer.handle = handle
        exchangesOverlap = !busy.isEmpty
        handle.place = busy.count
        busy.append(handle)
        if exchange.receiver.mayPause {
            streamCount += 1
            limitConnections()
        }
        if handle.isUploading { uploadCount += 1 }
        expiryInstant = .max
        idleCheckInstant = min(idleCheckInstant, now &+ handle.attempt.idleLimit)
    }

    /// Ends an exchange that libcurl has not completed, and closes its connection unless other
    /// exchanges use it.
    func end(_ handle: CurlHandle, _ error: any Error) {
        guard let exchange = handle.exchange, !handle.attempt.isComplete else { return }
        // Otherwise, libcurl would reuse a connection on which it has reset a stream.
        if handle.attempt.connection?.isMultiplexed == true { handle.forbidReuse() }
        ended.append(Ended(transfer: exchange.transfer, result: .failure(error), metrics: handle.metrics()))
        release(handle)
    }

    /// Releases the capacity of an exchange, which then no longer counts toward the connection
    /// limits.
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
        if !handle.attempt.isExclusive { handle.exchange?.queue?.connection = handle.attempt.connection }
        handle.exchange?.queue?.didReceiveBody(
            isLarge: handle.attempt.bodyCount > CurlSession.Configuration.smallBufferSize)
        // The handle may keep a receive buffer that is too small for the next exchange.
        if ccurl_has_first_http2_filter() != 0, handle.attempt.sendCount == 0 { handle.mustBeFreed = true }
        if handle.attempt.isHeld { handle.mustBeFreed = true }  // libcurl does not reset its pause
        handle.leaveConnection()
        curl_multi_remove_handle(multi, handle.easy)
        releaseCapacity(handle)
        if handle.isUploading { uploadCount -= 1 }
        if let exchange = handle.takeExchange() {
            exchange.transfer.handle = nil
            removeBusy(handle)
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

    private func removeBusy(_ handle: CurlHandle) {
        guard busy.indices.contains(handle.place), busy[handle.place] === handle, let last = busy.popLast() else {
            return  // it failed before it was added
        }
        guard last !== handle else { return }
        last.place = handle.place
        busy[handle.place] = last
    }

    func cancelAll() {
        for transfer in admission.removeWaiting() { transfer.refuse(URLError(.cancelled)) }
        for handle in busy { end(handle, URLError(.cancelled)) }
        endAllChannels(URLError(.cancelled))
    }
}
