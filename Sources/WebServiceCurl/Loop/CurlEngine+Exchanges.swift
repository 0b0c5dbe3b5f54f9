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
        while let (transfer, line) = admission.next() {
            guard let submission = transfer.submission else {  // cancelled while it waited
                admission.leave(line)
                continue
            }
            do {
                let handle = try free.popLast() ?? CurlHandle(self, configuration, share: share)
                do {
                    try begin(handle, CurlHandle.Exchange(submission: submission, line: line))
                    hasStarted = true
                } catch {
                    _ = handle.end()
                    free.append(handle)
                    throw error
                }
            } catch {
                admission.leave(line)
                transfer.finish(.failure(error), nil)
            }
        }
        if hasStarted { actOnTime() }
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
        handle.place = busy.count
        busy.append(handle)
        if handle.exchange?.receiver.mayPause == true {
            streams[ObjectIdentifier(exchange.submission.transfer)] = handle
            limitConnections()
        }
        if handle.isUploading { uploads[ObjectIdentifier(exchange.submission.transfer)] = handle }
        restMoment = .max
        silenceMoment = min(silenceMoment, start &+ handle.attempt.idleLimit)
    }

    /// Ends an exchange that libcurl has not completed, and closes its connection unless other
    /// exchanges use it.
    func end(_ handle: CurlHandle, _ error: any Error) {
        guard let transfer = handle.exchange?.submission.transfer else { return }
        // libcurl would use a connection again on which it has reset an HTTP/2 stream.
        if handle.attempt.connection?.isMultiplexed == true { handle.forbidReuse() }
        ended.append(Ended(transfer: transfer, result: .failure(error), metrics: handle.metrics()))
        release(handle)
    }

    /// Ends the part of a stream that counts toward the connection limits.
    func leaveLine(_ handle: CurlHandle) {
        guard let line = handle.exchange?.line else { return }
        handle.exchange?.line = nil
        admission.leave(line)
    }

    /// Continues an exchange. The closure returns the error that ends it.
    func proceed(_ handle: CurlHandle?, _ action: (CurlHandle) -> (any Error)?) {
        guard let handle else { return }
        if let error = action(handle) {
            end(handle, error)
        } else {
            if handle.isUploading { deaf.append(handle) }
            silenceMoment = min(silenceMoment, now &+ handle.attempt.idleLimit)
        }
    }

    /// Removes a handle from libcurl and returns it to the free handles.
    func release(_ handle: CurlHandle) {
        if handle.isHTTP2, !handle.attempt.isExclusive { handle.exchange?.line?.isMultiplexed = true }
        handle.leaveConnection()
        curl_multi_remove_handle(multi, handle.easy)
        if let last = busy.popLast(), last !== handle {
            busy[handle.place] = last
            last.place = handle.place
        }
        leaveLine(handle)
        let isUploading = handle.isUploading
        if let exchange = handle.end() {
            if isUploading { uploads[ObjectIdentifier(exchange.submission.transfer)] = nil }
            if exchange.receiver.mayPause {
                streams[ObjectIdentifier(exchange.submission.transfer)] = nil
                limitConnections()
            }
        }
        if free.count < 128, !handle.isWorn { free.append(handle) } else { handle.free() }
        if busy.isEmpty, connections.count > 0 {
            restMoment = now.addingSaturated(configuration.idleConnectionLifetime)
        }
    }

    func cancel(_ transfer: CurlTransfer) {
        let handle =
            streams[ObjectIdentifier(transfer)]
            ?? busy.first { $0.exchange?.submission.transfer === transfer }
        if let handle {
            end(handle, URLError(.cancelled))
        } else {
            transfer.finish(.failure(URLError(.cancelled)), nil)
        }
    }

    func cancelAll() {
        for transfer in admission.removeWaiting() {
            transfer.finish(.failure(URLError(.cancelled)), nil)
        }
        while let handle = busy.last { end(handle, URLError(.cancelled)) }
    }
}
