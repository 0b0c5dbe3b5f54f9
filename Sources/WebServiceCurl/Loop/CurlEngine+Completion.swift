import CCurl
import WebServiceCore

/// The completion of the exchanges that have ended.
extension CurlEngine {
    /// Completes the ended exchanges and starts waiting ones.
    ///
    /// The method repeats this until no exchange has ended, because a new one may end immediately.
    func collect() {
        repeat {
            endEarlyResponses()
            readMessages()
            if channels.multi != nil { readChannelMessages() }
            endBodies()
        } while completeEnded()
    }

    /// Completes the exchanges of ``earlyResponses``, which closes their connections.
    func endEarlyResponses() {
        for handle in earlyResponses {
            guard let exchange = handle.exchange else { continue }
            ended.append(Ended(transfer: exchange.transfer, result: .success([:]), metrics: handle.metrics()))
            release(handle)
        }
        earlyResponses.removeAll()
    }

    /// Ends the request bodies of ``uploadsToCheck``, which closes their connections.
    ///
    /// libcurl stops receiving at the end of the response or of the connection, but does not
    /// complete the exchange before the end of the request body. Ending the body makes libcurl
    /// return the result.
    func endBodies() {
        while let handle = uploadsToCheck.popLast() {
            guard handle.isUploading, !handle.attempt.isPaused, !handle.attempt.isBodyOver,
                !handle.attempt.isComplete,
                let connection = handle.attempt.connection,
                connections[connection.socket] === connection, !poller.isReading(connection.socket)
            else { continue }
            poller.replace(connection.socket) { connection.divert() }
            proceed(handle) { $0.endBody() }
        }
    }

    func readMessages() {
        var remaining: CInt = 0
        while let message = curl_multi_info_read(multi, &remaining) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else {
                continue
            }
            if let handle = handle(easy) { complete(handle, ccurl_message_result(message)) }
        }
    }

    /// Ends an exchange that libcurl has completed, or begins it again.
    func complete(_ handle: CurlHandle, _ code: CURLcode) {
        guard let exchange = handle.exchange, !handle.attempt.isComplete, handle.deliverUnread(code) else { return }
        handle.closeFailedConnection(code)
        if handle.attempt.mustBeginAgain || handle.isUnprocessed(code) {
            curl_multi_remove_handle(multi, handle.easy)
            handle.beginAgain()
            if curl_multi_add_handle(multi, handle.easy) == CURLM_OK { return }
        }
        ended.append(Ended(transfer: exchange.transfer, result: handle.result(code), metrics: handle.metrics()))
        handle.attempt.isComplete = true
        completed.append(handle)
    }

    /// Completes the transfers of the ended exchanges, then releases their handles.
    ///
    /// The completions are scheduled as one batch, because waking other threads once costs less
    /// than once per transfer.
    ///
    /// - Returns: Whether any exchange had ended. Other exchanges may then have started.
    func completeEnded() -> Bool {
        guard !ended.isEmpty else { return false }
        if ended.count == 1, let end = ended.first {
            end.complete()
        } else {
            HandlerPool.shared.together { for end in ended { end.complete() } }
        }
        ended.removeAll(keepingCapacity: true)
        for handle in completed { release(handle) }
        completed.removeAll(keepingCapacity: true)
        startAdmitted()
        return true
    }
}
