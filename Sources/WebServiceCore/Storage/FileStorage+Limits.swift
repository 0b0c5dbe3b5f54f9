import Foundation

extension FileStorage {
    /// What a storage believes to be in its folder: exact after a count, and true to what this storage does afterwards.
    struct Inventory: Sendable {
        private var count = 0
        private var bytes = 0
        /// A part of the entries: those that were written longest ago, the very oldest last.
        private var oldest: [(name: String, status: FileStatus)] = []

        /// - Parameters:
        ///   - now: What was written more than a minute later, when the clock was wrong, was written longest ago.
        ///   - kept: An entry that is no old one, whatever its time.
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

        /// Removes the entries written longest ago, save one, until both limits hold. It counts again when it knows of no old ones any more.
        mutating func makeRoom(
            in folder: borrowing Folder, _ names: Names, maximumBytes: Int, maximumCount: Int, now: Date, keeping kept: String
        ) throws(SystemFailure) {
            var countHelps = true
            while bytes > maximumBytes || count > maximumCount {
                if let (name, status) = oldest.popLast() {
                    // Written again or removed since the count.
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
    /// The sum, or the most there is: files with holes may say any length.
    fileprivate func addingSaturated(_ other: Int) -> Int {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? .max : sum
    }
}
