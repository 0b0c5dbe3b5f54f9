import Foundation

/// The status of a file, and the date of its last change of any kind.
package struct FileChange: Sendable, Equatable {
    package let status: FileStatus
    /// The date of the last change of the content or the status (`st_ctime`), in seconds since
    /// 1970, which no program can set. It also changes with permissions, names and extended
    /// attributes.
    package let date: Double

    fileprivate init(_ details: stat) {
        #if canImport(Darwin)
        let date = details.st_ctimespec
        #else
        let date = details.st_ctim
        #endif
        status = FileStatus(details)
        self.date = Double(date.tv_sec) + Double(date.tv_nsec) / 1e9
    }

    /// Reads the status of the file at a path. A link is followed.
    ///
    /// - Returns: `nil` if there is no file.
    package init?(path: String) throws(SystemFailure) {
        var details = stat()
        do throws(SystemFailure) {
            try system("stat") { stat(path, &details) }
        } catch {
            guard error.number == ENOENT else { throw error }
            return nil
        }
        self.init(details)
    }
}

extension Descriptor {
    package borrowing func change() throws(SystemFailure) -> FileChange { FileChange(try details()) }
}
