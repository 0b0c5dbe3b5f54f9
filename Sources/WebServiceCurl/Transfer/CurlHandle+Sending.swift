import CCurl
import Foundation
import WebServiceCore

/// The request body that libcurl sends, and the continuation of paused exchanges.
extension CurlHandle {
    func sendBody(_ room: UnsafeMutableRawBufferPointer) -> Int {
        attempt.progress(at: engine.now)
        guard attempt.upload != nil, !attempt.isBodyOver else { return 0 }
        do {
            guard let count = try attempt.upload?.read(into: room) else {
                attempt.isAwaitingBody = true
                return Int(CURL_READFUNC_PAUSE)
            }
            if count > 0, let upload = attempt.upload {
                exchange?.receiver.didSend(upload.offset, of: upload.count)
            }
            return count
        } catch {
            attempt.failure = error
            if var error = error as? WebServiceError {
                error.request = exchange?.request.source
                attempt.failure = error
            }
            return Int(CURL_READFUNC_ABORT)
        }
    }

    func seek(_ offset: curl_off_t, _ origin: CInt) -> CInt {
        guard attempt.upload != nil, origin == SEEK_SET, offset == 0 else {
            return CInt(CURL_SEEKFUNC_FAIL)
        }
        guard attempt.unread == nil else { return CInt(CURL_SEEKFUNC_FAIL) }
        if attempt.upload?.rewind() == true { return CInt(CURL_SEEKFUNC_OK) }
        attempt.failure = exchange.map {
            WebServiceError.bodyNotReplayable($0.request.source)
        }
        return CInt(CURL_SEEKFUNC_FAIL)
    }

    /// Reports a body that libcurl sent together with the header.
    func reportSmallBody() {
        guard attempt.upload == nil, let exchange,
            case let count = Int64(exchange.request.bodyCount), count > 0
        else { return }
        exchange.receiver.didSend(count, of: count)
    }

    /// Continues a paused exchange. libcurl calls ``receiveBody(_:)`` before this method returns.
    ///
    /// - Returns: The error that ends the exchange; `nil` if it continues.
    func unpause() -> (any Error)? {
        guard attempt.isPaused else { return nil }
        attempt.isPaused = false
        attempt.progress(at: engine.now)
        return proceed(attempt.isAwaitingBody ? CURLPAUSE_SEND : CURLPAUSE_CONT)
    }

    /// Continues an exchange that has waited for bytes of the request body.
    ///
    /// - Returns: The error that ends the exchange; `nil` if it continues.
    func sendMore() -> (any Error)? {
        guard attempt.isAwaitingBody else { return nil }
        attempt.isAwaitingBody = false
        attempt.progress(at: engine.now)
        return proceed(attempt.isPaused ? CURLPAUSE_RECV : CURLPAUSE_CONT)
    }

    /// Ends the request body before its last byte.
    ///
    /// - Returns: The error that ends the exchange; `nil` if it continues.
    func endBody() -> (any Error)? {
        attempt.isBodyOver = true
        attempt.isAwaitingBody = false
        forbidReuse()
        return proceed(CURLPAUSE_CONT)
    }

    /// Continues the exchange, and returns the error that ends it.
    ///
    /// - Parameter pauses: The directions that remain paused.
    private func proceed(_ pauses: CInt) -> (any Error)? {
        let code = curl_easy_pause(easy, pauses)
        return code == CURLE_OK
            ? attempt.failure : attempt.failure ?? CurlError.error(code, String(cString: detail))
    }
}
