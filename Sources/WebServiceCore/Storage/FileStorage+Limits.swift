import Foundation

extension FileStorage {
    /// The contents of a folder as known to this storage: exact after a scan, and then updated with
    /// the storage's own changes.
    struct Inventory: Sendable {
        private var count = 0
        private var bytes = 0
        /// Some of the oldest entries; the oldest of all is last.
        private var oldest: [(name: String, status: FileStatus)] = []

        /// - Parameters:
        ///   - now: The current date. Entries dated more than a minute later, because of an
        ///     incorrect clock, count as the oldest.
        ///   - kept: An entry that counts as the newest, regardless of its date.
        init(of folder: borrowing Folder, _ names: Names, now: Date, keeping kept: String) throws(SystemFailure) {
            var entries: [(name: String, status: FileStatus)] = []
            for name in try folder.names() where names.kind(of: name) == .entry {
                if let status = try folder.status(of: name), status.isRegular { entries.append((name, status)) }
            }
            count = entries.count
            bytes = entries.reduce(0) { $0.addingSaturated($1.status.size) }
            let future = now.timeIntervalSince1970 + 60
            entries.sort { Self.order($0, future, kept) < Self.order($1, future, kept) }
            oldest = entries.prefix(entries.count / 8 + 1).reversed()
        }

        mutating func add(_ size: Int, replacing old: FileStatus?) {
            if let old { remove(old) }
            count += 1
            bytes = bytes.addingSaturated(size)
        }

        mutating func remove(_ old: FileStatus) {
            guard old.isRegular else { return }
            count -= 1
            bytes -= old.size
        }

        /// Removes the oldest entries, except for `kept`, until both limits are met. The folder is
        /// scanned again when the list of old entries is exhausted.
        mutating func makeRoom(
            in folder: borrowing Folder, _ names: Names, maximumBytes: Int, maximumCount: Int, now: Date,
            keeping kept: String
        ) throws(SystemFailure) {
            var countHelps = true
            while bytes > maximumBytes || count > maximumCount {
                if let (name, status) = oldest.popLast() {
                    // The entry was written again or removed after the scan.
                    guard name != kept, try folder.status(of: name) == status else { continue }
                    try folder.remove(name)
                    remove(status)
                    countHelps = true
                } else {
                    guard countHelps else { return }
                    self = try Self(of: folder, names, now: now, keeping: kept)
                    countHelps = false
                }
            }
        }

        private static func order(
            _ entry: (name: String, status: FileStatus), _ future: TimeInterval, _ kept: String
        ) -> (Int, Int, Int, String) {
            let (seconds, nanoseconds) = (entry.status.modifiedSeconds, entry.status.modifiedNanoseconds)
            return (entry.name == kept ? 2 : Double(seconds) > future ? 0 : 1, seconds, nanoseconds, entry.name)
        }
    }
}

extension Int {
    /// Returns the sum, or the maximum on overflow: sparse files may have any length.
    fileprivate func addingSaturated(_ other: Int) -> Int {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? .max : sum
    }
}
