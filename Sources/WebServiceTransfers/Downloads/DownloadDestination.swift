import Foundation
import WebServiceCore

/// The location of a downloaded file: a folder, and the name of the file in it.
struct DownloadDestination: Sendable, Equatable {
    /// The path of the folder.
    let folder: String
    private(set) var name: String

    /// Creates a destination from the URL of a file.
    init(file: URL) throws(WebServiceError) {
        let name = file.lastPathComponent
        guard !["", "/", ".", ".."].contains(name), !file.hasDirectoryPath else {
            throw WebServiceError(.download, "the destination of a download must be a file URL that names a file")
        }
        try self.init(folder: file.deletingLastPathComponent(), name: name)
    }

    /// Creates a destination from a folder and the name of a file.
    init(folder: URL, name: String) throws(WebServiceError) {
        let isLocal = folder.isFileURL && [nil, "", "localhost"].contains(folder.host(percentEncoded: false))
        let path = folder.absoluteURL.path
        guard isLocal, path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0), !name.utf8.contains(0) else {
            throw WebServiceError(
                .download, "the destination of a download must be a local file URL; use URL(fileURLWithPath:)")
        }
        self.folder = path
        self.name = name
    }

    /// Returns the destination in the same folder with another name.
    func named(_ name: String) -> DownloadDestination {
        var other = self
        other.name = name
        return other
    }

    /// The URL of the file.
    var url: URL { URL(fileURLWithPath: folder, isDirectory: true).appendingPathComponent(name, isDirectory: false) }
}

extension DownloadDestination {
    /// Opens the folder. A link to a folder is followed.
    ///
    /// - Returns: `nil` if the folder does not exist.
    func openFolder() throws(WebServiceError) -> Folder? {
        do throws(SystemFailure) { return try Folder(folder, followsLink: true) } catch {
            throw error.error(.download, "the folder \(folder) could not be opened")
        }
    }

    /// Creates the folder and its missing parents, with the permissions of new folders. An existing
    /// folder is not an error.
    ///
    /// - Parameter synchronize: Whether the names of the new folders are flushed to the disk.
    /// - Throws: `WebServiceError.Code.download` with the path of the first folder that could not
    ///   be created, or of the file that is in its place.
    func createFolder(synchronize: Bool) throws(WebServiceError) {
        do throws(SystemFailure) {
            try Folder.create(folder, mode: 0o777, synchronize: synchronize)
        } catch {
            throw error.error(.download, "the folder \(firstMissing) could not be created")
        }
        // A file, or a link without a target, is not replaced.
        guard try openFolder() != nil else {
            throw WebServiceError(
                .download, "the folder \(folder) could not be created: it is a link without a target; remove the link",
                underlying: POSIXError(.ENOENT))
        }
    }

    /// The path of the first folder that does not exist, or of the file in its place.
    private var firstMissing: String {
        let ends = folder.utf8.indices.dropFirst().filter { folder.utf8[$0] == UInt8(ascii: "/") }
        for end in ends + [folder.endIndex] {
            let path = String(folder[..<end])
            // A folder that cannot be read exists nevertheless.
            do throws(SystemFailure) { if try Folder(path, followsLink: true) == nil { return path } } catch {
                if !error.isRefused { return path }
            }
        }
        return folder
    }
}
