import WebServiceCore
import WebServiceFields

/// The limits of a server for an upload, and the size of its pieces.
struct UploadLimits: Sendable, Equatable, Codable {
    /// The maximum number of pieces of a file, unless the server rejects pieces as too large.
    static let maximumPieces: Int64 = 100_000
    /// The minimum size of a piece that results from halving a rejected piece, in bytes.
    static let minimumHalvedPiece: Int64 = 64 << 10

    var maximumSize: Int64?
    /// The size below which the server offers no resumable upload.
    var minimumSize: Int64?
    var maximumAppend: Int64?
    var minimumAppend: Int64?
    /// The remaining lifetime of the upload in seconds.
    var maximumAge: Int64?

    init() {}

    /// Parses `Upload-Limit` of the draft.
    ///
    /// - Returns: `nil` if the field is absent or malformed, or if a known member is not an integer
    ///   of at least 0.
    init?(_ headers: Headers) {
        guard headers["Upload-Limit"] != nil, let members = headers.structuredDictionary("Upload-Limit") else {
            return nil
        }
        let keys: [(String, WritableKeyPath<UploadLimits, Int64?>)] = [
            ("max-size", \.maximumSize), ("min-size", \.minimumSize), ("max-append-size", \.maximumAppend),
            ("min-append-size", \.minimumAppend), ("max-age", \.maximumAge),
        ]
        for (key, path) in keys {
            guard let member = members[key] else { continue }
            guard let value = member.item?.value.integer, value >= 0 else { return nil }
            self[keyPath: path] = value
        }
    }

    /// Returns the piece size of a file.
    ///
    /// - Parameters:
    ///   - length: The length of the file.
    ///   - preferred: The size that the caller prefers.
    /// - Throws: `WebServiceError.Code.upload` if the limits do not allow the upload.
    func piece(of length: Int64, preferred: Int64) throws(WebServiceError) -> Int64 {
        if let maximumSize, length > maximumSize {
            throw WebServiceError(
                .upload,
                "the file has \(length) bytes, but the server accepts at most \(maximumSize); send a smaller file")
        }
        let piece = min(max(preferred, minimumAppend ?? 0), maximumAppend ?? .max)
        guard piece > 0, piece >= min(minimumAppend ?? 0, length), piece >= length / Self.maximumPieces else {
            throw WebServiceError(
                .upload,
                "pieces of \(piece) bytes do not meet the limits of the server, or would require more than "
                    + "\(Self.maximumPieces) requests; increase pieceSize or send a smaller file")
        }
        return piece
    }
}

extension Headers {
    /// Returns the value of an integer field of the draft; `nil` if it is absent, malformed or
    /// negative.
    func uploadInteger(_ name: Name) -> Int64? {
        structuredItem(name)?.value.integer.flatMap { $0 >= 0 ? $0 : nil }
    }

    /// The value of `Upload-Complete`; `nil` if it is absent or malformed.
    var uploadComplete: Bool? { structuredItem("Upload-Complete")?.value.boolean }

    /// Whether `Accept-Patch` contains the media type of a piece of the draft (RFC 5789, section
    /// 3.1).
    var acceptsPartialUpload: Bool {
        (self["Accept-Patch"] ?? "").split(separator: ",").contains { type in
            let name = type.split(separator: ";", omittingEmptySubsequences: false).first ?? ""
            return String(Substring(ASCII.trimmed(name.utf8))).equalsIgnoringASCIICase("application/partial-upload")
        }
    }

    /// Returns the value of an integer field of tus; `nil` if it is absent or malformed.
    func tusInteger(_ name: Name) -> Int64? {
        self[name].flatMap { ASCII.number(ASCII.trimmed($0.utf8)) }.map(Int64.init)
    }

    /// Returns the elements of a list field of tus.
    func tusList(_ name: Name) -> [String] {
        (self[name] ?? "").split(separator: ",").map { String(Substring(ASCII.trimmed($0.utf8))) }
    }
}
