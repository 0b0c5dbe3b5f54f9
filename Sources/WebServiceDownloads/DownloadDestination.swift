import Foundation
import WebServiceCore

/// The location of a downloaded file: a folder, and a name in it.
struct DownloadDestination: Sendable, Equatable {
    /// The path of the folder.
    let folder: String
    private(set) var name: String

    /// Creates a destination from the URL of a file.
    init(file: URL) throws(WebServiceError) {
        let name = file.lastPathComponent
        guard !["", "/", ".", ".."].contains(name), !file.hasDirectoryPath else {
            throw WebServiceError(.download, "the destination of a download must be the URL of a file")
        }
        try self.init(folder: file.deletingLastPathComponent(), name: name)
    }

    /// Creates a destination from a folder and the name of a file.
    init(folder: URL, name: String) throws(WebServiceError) {
        let isLocal = folder.isFileURL && [nil, "", "localhost"].contains(folder.host(percentEncoded: false))
        let path = folder.absoluteURL.path
        guard isLocal, path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0), !name.utf8.contains(0) else {
            throw WebServiceError(.download, "the destination of a download must be local")
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
