import Foundation
import SystemCrypto
public import WebServiceCore

/// An interceptor that adds a `Content-Digest` to requests with a body (RFC 9530).
///
/// ```swift
/// service.interceptors = [.contentDigest(), .retry()]
/// ```
/// The server can use this field to verify that the body has arrived unchanged.
/// - The digest is computed from the bytes that are sent, after `Request.Options.compressesBody`
///   has been applied. Place the interceptor after those that change the body.
/// - To compute the digest, files and forms with files are read in pieces, in the background,
///   before they are sent. With `compressesBody`, they are also compressed for this purpose. If a
///   file changes after that, the digest does not match the body.
/// - If the body is a sequence, a form with a sequence or an `httpBodyStream`, the request is sent
///   without the field, because the bytes may be available only once.
/// - Each request of an upload (`WebServiceTransfers`) has the digest of the piece that it
///   contains.
/// - A request that has no body or that already has the field is not changed.
///
/// If the interceptor precedes a retry policy in the list, it computes the digest once. If it
/// follows the retry policy, it computes the digest for each attempt. If the request is cancelled,
/// the computation ends. All members may be used from any thread.
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
    /// - Throws: An error of the request's encoding, such as `WebServiceError.Code.encoding` if a
    ///   file cannot be read; any error of `next`; or `CancellationError`.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        var request = request
        if request.headers[Self.field] == nil, let digest = try await digest(of: request) {
            try request.headers.setStructuredDictionary(
                [algorithm.rawValue: .item(.byteSequence(Data(digest)))], for: Self.field)
        }
        return try await next(request)
    }

    private static let field: Headers.Name = "Content-Digest"

    /// - Returns: `nil` if the request has no body or if its body contains a sequence.
    private func digest(of request: Request) async throws -> [UInt8]? {
        let encoded = try request.encode()
        let hash = SystemHash(algorithm == .sha256 ? HashFunction.sha256 : .sha512)
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
                if isAtEnd { return hash.finish() }
            }
        }
        // Compressing a file again produces the same bytes, whereas a sequence may produce
        // different bytes.
        var plain = request
        plain.options.compressesBody = false
        // The sequence of an upload is a piece of a file.
        guard let stream = encoded.stream, try request.uploadsPart || plain.encode().bodySource != nil else {
            return nil
        }
        try await stream.produce { piece in
            try Task.checkCancellation()
            piece.withUnsafeBytes { hash.update($0) }
        }
        return hash.finish()
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
