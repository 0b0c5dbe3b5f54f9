import Foundation
import WebServiceCore

/// The folder of an account. Its removal consists of steps, after each of which the process may
/// end. All members block the thread.
struct AccountFolder {
    /// The file that shows that a log-out has begun.
    private static let marker = ".logged-out"
    /// The suffix of the names of folders that are being removed.
    private static let suffix = ".removed-account"

    /// The number of log-outs in progress in this process, for each path.
    static let logOuts = Mutex<[String: Int]>([:])

    private let url: URL
    private var parent: URL { url.deletingLastPathComponent() }
    private var name: String { url.lastPathComponent }

    init(_ url: URL) { self.url = url }

    /// Creates the marker durably, unless the folder is missing.
    func beginLogOut() throws {
        try Self.translating {
            guard let folder = try Folder(url.path, followsLink: true) else { return }
            _ = try folder.openFile(Self.marker, isNew: false)
            try folder.synchronize()
        }
    }

    /// Renames the folder, so that its files cannot be found by their paths, and removes it, also
    /// if an earlier call has renamed it. A folder that cannot be renamed is emptied.
    func remove() throws {
        try Self.translating {
            guard let folder = try Folder(parent.path, followsLink: true) else { return }
            if try folder.status(of: name) != nil {
                do throws(SystemFailure) {
                    try folder.move(name, to: ".\(name).\(UUID().uuidString.lowercased())\(Self.suffix)")
                } catch {
                    return try removeContents()
                }
                try folder.synchronize()
            }
            for other in try Self.names(in: folder) where other.hasPrefix(".\(name).") && other.hasSuffix(Self.suffix) {
                try Self.remove(other, in: parent)
            }
            try folder.synchronize()
        }
    }

    /// Removes all files, the marker last.
    private func removeContents() throws {
        guard let folder = try Folder(url.path, followsLink: true) else { return }
        for name in try Self.names(in: folder) where name != Self.marker { try Self.remove(name, in: url) }
        try folder.synchronize()
        try folder.remove(Self.marker)
    }

    private static func names(in folder: borrowing Folder) throws(SystemFailure) -> [String] {
        var names: [String] = []
        try folder.forEachName { name throws(SystemFailure) in names.append(name) }
        return names
    }

    /// Removes the folder if it has a marker, unless this process is logging the account out.
    func finishLogOut() throws {
        try Self.translating {
            guard Self.logOuts.withLock({ $0[url.path] }) == nil, let folder = try Folder(url.path, followsLink: true),
                try folder.status(of: Self.marker) != nil
            else { return }
            try remove()
        }
    }

    /// Removes the folders that were renamed, and those that have a marker, and throws the first
    /// error afterwards.
    static func finishLogOuts(in parent: URL) throws {
        var failure: (any Error)?
        try translating {
            guard let folder = try Folder(parent.path, followsLink: true) else { return }
            for name in try names(in: folder) where try folder.status(of: name)?.isFolder == true {
                do {
                    if name.hasPrefix("."), name.hasSuffix(suffix) {
                        try remove(name, in: parent)
                    } else {
                        try AccountFolder(parent.appendingPathComponent(name, isDirectory: true)).finishLogOut()
                    }
                } catch {
                    failure = failure ?? error
                }
            }
            try folder.synchronize()
        }
        if let failure { throw failure }
    }

    private static func remove(_ name: String, in parent: URL) throws {
        let url = parent.appendingPathComponent(name, isDirectory: true)
        var attempts = 0
        // Another account or process may remove the same files at the same time.
        while FileManager.default.fileExists(atPath: url.path) {
            attempts += 1
            do { try FileManager.default.removeItem(at: url) } catch  where attempts == 10 {
                throw WebServiceError(
                    .storage, "the folder of the account could not be removed; log out again", underlying: error)
            } catch {}  // see above
        }
    }

    private static func translating(_ work: () throws -> Void) throws {
        do { try work() } catch let failure as SystemFailure {
            throw failure.error(.storage, "the folder of the account could not be removed")
        }
    }
}
