import CCurl
import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The instants at which the loop acts without an event.
extension CurlEngine {
    /// Returns the timeout for the next wait, in milliseconds; -1 to wait indefinitely.
    ///
    /// If the clock is not the system clock, the method also sets its alarm.
    func timeout(for loop: CurlLoop, _ current: UInt64) -> Int32 {
        let instant = min(idleCheckInstant, expiryInstant)
        guard clock.isInjected else {
            waitEnd = min(instant, libraryInstants)
            return Self.milliseconds(from: current, to: waitEnd)
        }
        setAlarm(at: instant, for: loop)
        return instant <= clock.now ? 0 : Self.milliseconds(from: systemNow, to: libraryInstants)
    }

    /// The first instant, by the system clock, at which to call libcurl even if no event has
    /// occurred.
    private var libraryInstants: UInt64 { min(libraryInstant ?? .max, channels.instant ?? .max) }

    private static func milliseconds(from current: UInt64, to instant: UInt64) -> Int32 {
        if instant == .max { return -1 }
        return instant <= current ? 0 : Int32(clamping: (instant - current + 999_999) / 1_000_000)
    }

    /// The current instant of the system clock, which measures libcurl's timeouts.
    var systemNow: UInt64 { clock.isInjected ? TaskClock.system.now : now }

    /// Replaces the alarm that wakes the loop.
    func setAlarm(at instant: UInt64, for loop: CurlLoop) {
        guard instant != alarm?.instant ?? .max else { return }
        var current: UInt64
        repeat {
            if let alarm = alarm.take() { clock.cancel(alarm.alarm) }
            guard instant != .max else { return }
            current = clock.now
            let delay = Duration.nanoseconds(Int64(clamping: instant - min(instant, current)))
            alarm = (instant, clock.schedule(after: delay, loop))
        } while clock.now != current  // if time has passed, the delay is too long
    }

    /// Lets libcurl act on its timers. libcurl may also receive bytes, which count as activity at
    /// the current instant.
    func handleTimeout() {
        now = clock.now
        libraryInstant = nil
        callLibrary(multi, ccurl_socket_timeout(), 0)
    }

    func setTimer(_ milliseconds: Int) -> CInt {
        libraryInstant = Self.instant(after: milliseconds)
        return 0
    }

    /// Returns the instant of a timer of libcurl; `nil` if the timer is removed.
    static func instant(after milliseconds: Int) -> UInt64? {
        milliseconds < 0
            ? nil : milliseconds == 0 ? 0 : TaskClock.system.now.addingSaturated(.milliseconds(milliseconds))
    }

    /// Ends the exchanges whose idle timeout has elapsed, and schedules the next check.
    func endIdle(_ start: UInt64) {
        idleCheckInstant = .max
        endIdleChannels(start)
        for handle in busy {
            // An exchange that waits for the program has no timeout, unless `close()` waits for the
            // exchange.
            let isWaiting = handle.attempt.isPaused || handle.attempt.isAwaitingBody
            if isWaiting, closingInstant == nil { continue }
            let limit = handle.attempt.idleEnd(after: isWaiting ? closingInstant : nil)
            if limit <= start, isWaiting {
                end(handle, URLError(.cancelled))
            } else if limit <= start {
                // Other exchanges keep a multiplexed connection open, and libcurl would continue to
                // send new ones on it. If nothing has arrived within the timeout, the connection is
                // shut down, which ends or restarts all its exchanges.
                if let connection = handle.attempt.connection,
                    connection.isQuiet(since: start - handle.attempt.idleLimit)
                {
                    connection.shutDown()
                }
                let seconds = Double(handle.attempt.idleLimit) / 1e9
                let text =
                    "no byte of the request or the response was sent or received for \(seconds) s; set a longer "
                    + "timeout if the server needs more time"
                end(handle, handle.markingUnsent(CurlError.error(.timedOut, text)))
            } else {
                idleCheckInstant = min(idleCheckInstant, max(limit, start &+ Self.idleCheckInterval))
            }
        }
    }

    /// The shortest interval between two checks, in nanoseconds, which limits their cost.
    private static let idleCheckInterval: UInt64 = 2_000_000

    /// Closes the expired connections. libcurl checks for them only when it needs a connection.
    ///
    /// Only freeing the multi handle closes them immediately. This also discards the parsed
    /// certificates.
    func closeConnections() {
        expiryInstant = .max
        freeChannelMulti()
        guard busy.isEmpty, let fresh = curl_multi_init() else { return }
        curl_multi_cleanup(multi)
        multi = fresh
        libraryInstant = nil
        configureMulti()
    }
}
