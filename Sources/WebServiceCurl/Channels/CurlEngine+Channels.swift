import CCurl
import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The connections on which the program sends and receives bytes.
///
/// These connections belong to a separate multi handle. They therefore do not count toward
/// libcurl's connection limits for requests, do not replace idle connections, and do not end when
/// idle connections expire.
extension CurlEngine {
    /// The state of the channels.
    struct Channels {
        var admission: Admission<CurlChannel>
        /// The drivers of the channels that are open or being opened.
        var drivers: [ObjectIdentifier: ChannelDriver] = [:]
        /// The drivers of open connections, by socket.
        var open: [Int32: ChannelDriver] = [:]
        /// The multi handle; `nil` before the first channel, and after it was freed.
        var multi: UnsafeMutableRawPointer?
        /// The sockets that this multi handle watches.
        var sockets: Set<Int32> = []
        /// The instant, by the system clock, at which to call libcurl even if no event has
        /// occurred.
        var instant: UInt64?
        /// The buffer for received bytes; empty if there is no multi handle.
        var buffer = UnsafeMutableRawBufferPointer(start: nil, count: 0)

        var isEmpty: Bool { drivers.isEmpty && admission.isEmpty }

        init(maximum: Int) {
            admission = Admission(maximumPerHost: max(1, maximum), maximum: max(1, maximum))
        }
    }

    /// The buffer into which the drivers receive.
    var channelBuffer: UnsafeMutableRawBufferPointer { channels.buffer }

    // MARK: Opening

    func startChannels() {
        var hasStarted = false
        while let (channel, queue) = channels.admission.next() {
            guard let route = channel.begin() else {  // it ended while it waited
                channels.admission.release(queue)
                continue
            }
            do {
                try begin(channel, queue, route)
                hasStarted = true
            } catch {
                channels.admission.release(queue)
                channel.end(error)
            }
        }
        if hasStarted { handleChannelTimeout() }
    }

    private func begin(
        _ channel: CurlChannel, _ queue: Admission<CurlChannel>.HostQueue, _ route: CurlRoute
    ) throws {
        let multi = try channelMulti()
        let handle = try CurlHandle(self, share: share, rules: try rules.index(for: channel.request.url))
        let driver = ChannelDriver(channel, handle, queue, at: clock.now)
        do {
            try handle.begin(driver, route, connectTimeout: configuration.connectTimeout, at: driver.lastActivity)
            let code = curl_multi_add_handle(multi, handle.easy)
            guard code == CURLM_OK else {
                throw WebServiceError(
                    .curl, "libcurl rejected the connection: \(String(cString: curl_multi_strerror(code)))")
            }
        } catch {
            handle.free()
            throw error
        }
        channels.drivers[ObjectIdentifier(channel)] = driver
        if closingInstant != nil { idleCheckInstant = 0 }
    }

    private func channelMulti() throws -> UnsafeMutableRawPointer {
        if let multi = channels.multi { return multi }
        guard let multi = curl_multi_init() else {
            throw WebServiceError(.curl, "libcurl could not allocate memory for an event loop")
        }
        _ = ccurl_multi_set_quick_exit(multi)
        ccurl_multi_set_callbacks(
            multi,
            { _, socket, what, context, _ in CurlEngine.from(context)?.watchForChannel(socket, what) ?? 0 },
            { _, milliseconds, context in CurlEngine.from(context)?.setChannelTimer(milliseconds) ?? 0 },
            Unmanaged.passUnretained(self).toOpaque()
        )
        if channels.buffer.isEmpty { channels.buffer = .allocate(byteCount: 64 << 10, alignment: 16) }
        channels.multi = multi
        return multi
    }

    /// Opens or ends the channels whose handles libcurl has completed.
    func readChannelMessages() {
        var remaining: CInt = 0
        while let multi = channels.multi, let message = curl_multi_info_read(multi, &remaining) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle,
                let driver = handle(easy)?.driver, driver.socket < 0
            else { continue }
            complete(driver, ccurl_message_result(message))
        }
    }

    private func complete(_ driver: ChannelDriver, _ code: CURLcode) {
        guard code == CURLE_OK else {
            if case .failure(let error) = driver.handle.result(code) { end(driver, error) }
            return
        }
        proceed(driver) { driver in
            if try driver.open() {
                channels.open[driver.socket] = driver
                return
            }
            guard driver.openingCount < 4, let multi = channels.multi else {
                throw CurlError.error(.networkConnectionLost, "the connection was closed immediately")
            }
            curl_multi_remove_handle(multi, driver.handle.easy)
            curl_multi_add_handle(multi, driver.handle.easy)
        }
    }

    // MARK: Events

    /// Continues a channel. An error that the closure throws ends the channel.
    func proceed(_ driver: ChannelDriver, _ action: (ChannelDriver) throws -> Void) {
        do { try action(driver) } catch { return end(driver, error) }
        guard driver.socket >= 0 else { return }
        let events = driver.events
        if events.isEmpty { poller.unwatch(driver.socket) } else { poller.watch(driver.socket, for: events) }
    }

    /// Sends and receives as a channel's callers have requested.
    func proceed(_ channel: CurlChannel) {
        guard let driver = channels.drivers[ObjectIdentifier(channel)], driver.socket >= 0 else { return }
        proceed(driver) { try $0.proceed() }
    }

    /// Returns the multi handle that watches a socket; `nil` if the event was handled.
    func actOnChannel(_ socket: Int32, _ events: Poller.Events) -> UnsafeMutableRawPointer? {
        if let driver = channels.open[socket] {
            proceed(driver) { try $0.act(on: events) }
            return nil
        }
        return channels.sockets.contains(socket) ? channels.multi : multi
    }

    private func watchForChannel(_ socket: curl_socket_t, _ what: CInt) -> CInt {
        if what == CInt(CURL_POLL_REMOVE) { channels.sockets.remove(socket) } else { channels.sockets.insert(socket) }
        return watch(socket, what)
    }

    private func setChannelTimer(_ milliseconds: Int) -> CInt {
        channels.instant = Self.instant(after: milliseconds)
        return 0
    }

    /// Lets libcurl act on the timers of the channels that are being opened.
    func handleChannelTimeout() {
        guard let multi = channels.multi else { return }
        now = clock.now
        channels.instant = nil
        var running: CInt = 0
        curl_multi_socket_action(multi, ccurl_socket_timeout(), 0, &running)
    }

    // MARK: Ending

    /// Ends a channel, and closes its connection.
    func end(_ driver: ChannelDriver, _ error: any Error) {
        driver.channel.end(error)
        release(driver)
    }

    /// Closes the connection of a channel that has ended.
    func release(_ channel: CurlChannel) {
        if let driver = channels.drivers[ObjectIdentifier(channel)] { release(driver) }
    }

    private func release(_ driver: ChannelDriver) {
        guard channels.drivers.removeValue(forKey: ObjectIdentifier(driver.channel)) != nil else { return }
        if driver.socket >= 0 {
            channels.open[driver.socket] = nil
            if ccurl_closes_with_handle() == 0 { connections[driver.socket]?.shutDown() }
        }
        driver.clear()
        if let multi = channels.multi { curl_multi_remove_handle(multi, driver.handle.easy) }
        driver.handle.free()
        channels.admission.release(driver.queue)
        guard channels.drivers.isEmpty else { return }
        if ccurl_closes_with_handle() == 0 { return freeChannelMulti() }
        if busy.isEmpty {
            expiryInstant = min(expiryInstant, now.addingSaturated(configuration.idleConnectionLifetime))
        }
    }

    func endAllChannels(_ error: any Error) {
        for channel in channels.admission.removeWaiting() { channel.end(error) }
        for driver in channels.drivers.values { end(driver, error) }
    }

    /// Ends the channels that have neither sent nor received bytes for their idle timeout since the
    /// session was closed.
    func endIdleChannels(_ start: UInt64) {
        guard let closingInstant else { return }
        for driver in channels.drivers.values {
            let (limit, overflows) = max(driver.lastActivity, closingInstant)
                .addingReportingOverflow(driver.idleLimit)
            if overflows { continue }
            if limit <= start {
                end(driver, URLError(.cancelled))
            } else {
                idleCheckInstant = min(idleCheckInstant, limit)
            }
        }
    }

    /// Frees the multi handle of the channels if there are no channels.
    func freeChannelMulti() {
        guard channels.drivers.isEmpty, let multi = channels.multi.take() else { return }
        curl_multi_cleanup(multi)
        channels.instant = nil
        channels.buffer.deallocate()
        channels.buffer = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }
}
