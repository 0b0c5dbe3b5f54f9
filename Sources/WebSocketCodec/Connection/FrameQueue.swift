import Foundation
import WebServiceCore

/// The frames that wait to be sent. Pongs are sent before all other frames.
struct FrameQueue {
    private var pongs = Queue<Data>()
    private var frames = Queue<Data>()
    /// The size of all frames, in bytes.
    private(set) var count = 0
    /// The number of bytes of all frames that were added so far, without those of pongs.
    private(set) var addedCount = 0
    /// The number of bytes of all frames that were taken so far, without those of pongs.
    private(set) var takenCount = 0

    /// The maximum number of pongs. The pong for the latest ping would be sufficient (RFC 6455,
    /// section 5.5.3).
    private static let maximumPongCount = 16

    mutating func append(_ frame: Data) {
        count += frame.count
        addedCount += frame.count
        frames.append(frame)
    }

    /// Appends a pong. If the maximum number is reached, the oldest pong is removed.
    mutating func append(pong frame: Data) {
        if pongs.count >= Self.maximumPongCount, let oldest = pongs.popFirst() { count -= oldest.count }
        count += frame.count
        pongs.append(frame)
    }

    /// Removes all frames.
    mutating func removeAll() {
        (pongs, frames, count) = (Queue(), Queue(), 0)
    }

    /// Removes frames until their total size reaches a minimum, and returns their bytes.
    ///
    /// - Returns: `nil` if there are no frames.
    mutating func takeFirst(minimumCount: Int) -> Data? {
        guard var bytes = popFirst() else { return nil }
        while bytes.count < minimumCount, let frame = popFirst() { bytes.append(frame) }
        return bytes
    }

    private mutating func popFirst() -> Data? {
        if let pong = pongs.popFirst() {
            count -= pong.count
            return pong
        }
        guard let frame = frames.popFirst() else { return nil }
        count -= frame.count
        takenCount += frame.count
        return frame
    }
}
