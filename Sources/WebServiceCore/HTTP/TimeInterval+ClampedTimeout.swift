import Foundation

extension TimeInterval {
    /// The timeout, limited to values that every transport supports.
    ///
    /// The range is from a millisecond to 1e9 seconds (30 years). NaN becomes the default of
    /// ``Request/Options/timeout``. The session enforces this idle timeout.
    /// ``SessionTask/ring()`` in `SessionTask+Exchange.swift` enforces the deadline.
    var clampedTimeout: TimeInterval {
        isNaN ? Request.Options().idleTimeout.inSeconds : Swift.min(Swift.max(self, 0.001), 1e9)
    }
}
