extension FileStorage {
    /// What a storage believes to be in its folder: exact after a count, and true to what this storage does afterwards.
    struct Inventory: Sendable {
        private var count = 0
        private var bytes = 0
        /// A part of the entries: those that were written longest ago, the very oldest last.
        private var oldest: [(name: String, status: FileStatus)] = []

        init(of folder: borrowing Folder, _ names: Names) throws(SystemFailure) {
            var entries: [(name: String, status: FileStatus)] = []
            for name in try folder.names() where names.kind(of: name) == .entry {
                if let status = try folder.status(of: name), status.isRegular { entries.append((name, status)) }
            }
            count = entries.count
            bytes = entries.reduce(0) { $0 + $1.status.size }
            entries.sort { Self.order($0) < Self.order($1) }
            oldest = entries.prefix(entries.count / 8 + 1).reversed()
        }

        mutating func add(_ size: Int, replacing old: FileStatus?) {
            if let old { remove(old) }
            count += 1
            bytes += size
        }

        mutating func remove(_ old: FileStatus) {
            guard old.isRegular else { return }
            count -= 1
            bytes -= old.size
        }

        /// Removes the entries written longest ago, save one, until both limits hold. It counts again when it knows of no old ones any more.
        mutating func makeRoom(
            in folder: borrowing Folder, _ names: Names, maximumBytes: Int, maximumCount: Int, keeping kept: String
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
                    self = try Self(of: folder, names)
                    countHelps = false
                }
            }
        }

        private static func order(_ entry: (name: String, status: FileStatus)) -> (Int, Int, String) {
            (entry.status.modifiedSeconds, entry.status.modifiedNanoseconds, entry.name)
        }
    }
}
