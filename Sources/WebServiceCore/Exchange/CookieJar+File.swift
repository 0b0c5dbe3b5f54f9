public import Foundation

extension CookieJar {
    /// Creates a jar with the cookies of a file.
    ///
    /// Expired cookies are omitted. The call blocks the thread.
    ///
    /// - Parameter file: A file written by ``write(to:includingSessionCookies:)``. If it does not
    ///   exist, the jar is empty.
    /// - Throws: ``WebServiceError/Code/storage`` if the file cannot be read, is not a regular
    ///   file, or does not contain cookies.
    public convenience init(contentsOf file: URL) throws {
        try self.init(contentsOf: file, timekeeper: nil)
    }

    package convenience init(contentsOf file: URL, timekeeper: (any Timekeeper)?) throws {
        self.init(timekeeper: timekeeper)
        for cookie in try Self.read(file) { add(cookie) }
    }

    /// Writes the cookies that have not expired to a file, which replaces an existing one.
    ///
    /// The file contains the values of the cookies and is accessible only to the user (0600).
    /// Missing parent folders are created (0700). The bytes are written to another file first and
    /// flushed to the disk, so that after a failure or crash the previous file remains. The call
    /// blocks the thread.
    ///
    /// - Parameters:
    ///   - file: The URL of the file.
    ///   - includingSessionCookies: Whether cookies without an expiry date are written. A user
    ///     agent discards them at the end of a session (RFC 6265, section 5.3). Defaults to `false`.
    /// - Throws: ``WebServiceError/Code/storage`` if the file cannot be written; the underlying
    ///   error is that of the system.
    public func write(to file: URL, includingSessionCookies: Bool = false) throws {
        let cookies = cookies.filter { includingSessionCookies || $0.expires != nil }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let bytes = try encoder.encode(cookies)
        let (path, name) = try Self.place(of: file)
        do {
            try Folder.create(path, synchronize: true)
            guard let folder = try Folder(path, followsLink: true) else {
                throw WebServiceError(
                    .storage, "the folder of the cookie file was removed or is a link to a missing folder; create it")
            }
            try folder.replace(
                name, with: bytes, through: ".\(name).\(UUID().uuidString)", date: date(), synchronize: true)
            try folder.synchronize()
        } catch let failure as SystemFailure {
            throw failure.error(.storage, "the cookie file could not be written")
        }
    }

    private static func read(_ file: URL) throws -> [Cookie] {
        let (path, name) = try place(of: file)
        do {
            guard let folder = try Folder(path, followsLink: true), try folder.status(of: name) != nil else {
                return []
            }
            guard let content = try folder.content(of: name) else {
                throw WebServiceError(.storage, "the cookie file is not a regular file; use another file")
            }
            return try JSON.decode([Cookie].self, from: content.bytes)
        } catch let failure as SystemFailure {
            throw failure.error(.storage, "the cookie file could not be read")
        } catch let error as DecodingError {
            throw WebServiceError(
                .storage, "the cookie file does not contain cookies of a CookieJar; remove it or use another file",
                underlying: error)
        }
    }

    /// Returns the path of the folder, and the name of the file in it.
    private static func place(of file: URL) throws(WebServiceError) -> (folder: String, name: String) {
        let name = file.lastPathComponent
        guard file.isFileURL, !name.isEmpty, name != "/", name != "..", name != "." else {
            throw WebServiceError(
                .storage, "the URL of the cookie file does not name a file; use URL(fileURLWithPath:) with a file name")
        }
        return (file.absoluteURL.deletingLastPathComponent().path, name)
    }
}
