import Foundation
import WebServiceCore

/// The folder of an account, and its removal in steps, each of which may be the last one of the
/// process. All members block the thread.
struct AccountFolder {
    /// The file that shows that a log-out has begun.
    private static let marker = ".logged-out"
    /// The suffix of the names of folders that are being removed.
    private static let suffix = ".removed-account"

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

    /// Renames the folder, so that its files cannot be found by their paths, and removes it.
    func remove() throws {
        try Self.translating {
            guard let folder = try Folder(parent.path, followsLink: true), try folder.status(of: name) != nil else {
                return
            }
            let newName = ".\(UUID().uuidString.lowercased())\(Self.suffix)"
            try folder.move(name, to: newName)
            try folder.synchronize()
            try Self.remove(newName, in: parent)
            try folder.synchronize()
        }
    }

    /// Removes the folder if it has a marker.
    func finishLogOut() throws {
        try Self.translating {
            guard let folder = try Folder(url.path, followsLink: true), try folder.status(of: Self.marker) != nil else {
                return
            }
            try remove()
        }
    }

    static func finishLogOuts(in parent: URL) throws {
        try translating {
            guard let folder = try Folder(parent.path, followsLink: true) else { return }
            var names: [String] = []
            try folder.forEachName { name throws(SystemFailure) in names.append(name) }
            for name in names where try folder.status(of: name)?.isFolder == true {
                if name.hasPrefix("."), name.hasSuffix(suffix) {
                    try remove(name, in: parent)
                } else {
                    try AccountFolder(parent.appendingPathComponent(name, isDirectory: true)).finishLogOut()
                }
            }
            try folder.synchronize()
        }
    }

    private static func remove(_ name: String, in parent: URL) throws {
        let url = parent.appendingPathComponent(name, isDirectory: true)
        do { try FileManager.default.removeItem(at: url) } catch {
            // Another process may have removed it.
            guard FileManager.default.fileExists(atPath: url.path) else { return }
            throw WebServiceError(
                .storage, "the folder of the account could not be removed; log out again", underlying: error)
        }
    }

    private static func translating(_ work: () throws -> Void) throws {
        do { try work() } catch let failure as SystemFailure {
            throw failure.error(.storage, "the folder of the account could not be removed")
        }
    }
}
