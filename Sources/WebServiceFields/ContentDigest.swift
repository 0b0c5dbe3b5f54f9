import Foundation
public import WebServiceCore

/// An interceptor that adds a `Content-Digest` to requests with a body (RFC 9530).
///
/// ```swift
/// service.interceptors = [.contentDigest(), .retry()]
/// ```
/// The server can verify with this field that the content has arrived unchanged.
/// - The digest is that of the bytes that are sent, after `Request.Options.compressesBody` has been
///   applied. Place the interceptor after those that change the body.
/// - Files and forms with files are read in pieces before they are sent, in the background. With
///   `compressesBody`, they are also compressed for that purpose. If a file changes after it was
///   read, the server receives a digest that does not match.
/// - A sequence is not read for the digest, because its bytes may not be available twice: such a
///   request is sent without the field, and so is a form with a sequence and an `httpBodyStream`.
/// - A request without a body, or with the field, is not changed.
///
/// Before a retry policy in the list, the digest is computed once; after it, for each attempt.
/// Cancelling the request ends the computation. All members may be used from any thread.
public struct ContentDigest: Interceptor {
    /// A hash function.
    public enum Algorithm: String, Sendable, Hashable, CaseIterable {
        /// SHA-256 (FIPS 180-4).
        case sha256 = "sha-256"
        /// SHA-512 (FIPS 180-4).
        case sha512 = "sha-512"
    }

    /// The hash function.
    public let algorithm: Algorithm

    /// Creates an interceptor. The hash function defaults to SHA-256.
    public init(_ algorithm: Algorithm = .sha256) {
        self.algorithm = algorithm
    }

    /// Adds a digest and sends the request.
    ///
    /// - Throws: `WebServiceError.Code.encoding` for a file that cannot be read; any error of
    ///   `next`; `CancellationError`.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        var request = request
        if request.headers[Self.field] == nil, let digest = try await digest(of: request) {
            try request.headers.setStructuredDictionary(
                [algorithm.rawValue: .item(.byteSequence(Data(digest)))], for: Self.field)
        }
        return try await next(request)
    }

    private static let field: Headers.Name = "Content-Digest"

    /// - Returns: `nil` for a request without a body, or with a sequence.
    private func digest(of request: Request) async throws -> [UInt8]? {
        let encoded = try request.encode()
        var hash = RunningHash(algorithm == .sha256 ? .sha256 : .sha512)
        if let source = encoded.bodySource ?? encoded.body.map({ BodySource($0) }) {
            let reader = BodyReader(source)
            var buffer = [UInt8](repeating: 0, count: min(256 << 10, source.count))
            while true {
                try Task.checkCancellation()
                let isAtEnd = try buffer.withUnsafeMutableBytes { buffer in
                    let count = try reader.read(into: buffer)
                    hash.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                    return count == 0
                }
                if isAtEnd { return hash.value }
            }
        }
        // A compressed file is produced in the same pieces again. A sequence may be different.
        var plain = request
        plain.options.compressesBody = false
        guard let stream = encoded.stream, try plain.encode().bodySource != nil else { return nil }
        try await stream.produce { piece in
            try Task.checkCancellation()
            piece.withUnsafeBytes { hash.update($0) }
        }
        return hash.value
    }
}

extension Interceptor where Self == ContentDigest {
    /// Returns an interceptor that adds a `Content-Digest`; see ``ContentDigest``.
    ///
    /// - Parameter algorithm: The hash function. Defaults to SHA-256.
    public static func contentDigest(_ algorithm: ContentDigest.Algorithm = .sha256) -> ContentDigest {
        ContentDigest(algorithm)
    }
}
