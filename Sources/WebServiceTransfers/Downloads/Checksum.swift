import WebServiceCore

/// The expected hash of a downloaded file.
///
/// ```swift
/// service.GET("/brew.iso").download(to: file, checksum: .sha256("9f86d081884c7d65…"))
/// ```
public struct Checksum: Sendable, Hashable {
    let algorithm: SHA2
    /// The hash; `nil` if the given string is not a hash.
    let hash: [UInt8]?

    /// Returns a checksum with a SHA-256 hash (FIPS 180-4).
    ///
    /// - Parameter hex: 64 hexadecimal digits. With any other string, the download fails with
    ///   `WebServiceError.Code.download` before a request is sent.
    public static func sha256(_ hex: String) -> Checksum { Checksum(.sha256, hex) }

    /// Returns a checksum with a SHA-512 hash (FIPS 180-4).
    ///
    /// - Parameter hex: 128 hexadecimal digits. With any other string, the download fails with
    ///   `WebServiceError.Code.download` before a request is sent.
    public static func sha512(_ hex: String) -> Checksum { Checksum(.sha512, hex) }

    private init(_ algorithm: SHA2, _ hex: String) {
        self.algorithm = algorithm
        var hash: [UInt8] = []
        var high: UInt8?
        for byte in hex.utf8 {
            guard let digit = ASCII.hexValue(byte), hash.count < algorithm.length else {
                self.hash = nil
                return
            }
            if let first = high {
                hash.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        self.hash = high == nil && hash.count == algorithm.length ? hash : nil
    }
}
