import CCurl
import Foundation

/// The certificates that libcurl trusts by default: a file, and a directory used by OpenSSL.
///
/// OpenSSL looks up the certificates in the directory by the hashes of their subjects. Without a
/// directory, libcurl parses the file once and shares the result between connections. With a
/// directory, every new TLS connection parses the whole file. A directory is redundant if the file
/// contains all its certificates.
struct TrustStore: Sendable {
    let file: String?
    /// Whether the directory adds certificates to the file.
    ///
    /// `true` if the file cannot be read.
    let needsDirectory: Bool
    /// Whether the directory contains all certificates of the file.
    let hasCompleteDirectory: Bool

    /// The default store of this build of libcurl, evaluated once per process.
    static let system: TrustStore = {
        guard let information = curl_version_info(CURLVERSION_SEVENTH),
            information.pointee.age.rawValue >= CURLVERSION_SEVENTH.rawValue
        else {
            return TrustStore(file: nil, directory: nil)
        }
        return TrustStore(
            file: information.pointee.cainfo.map { String(cString: $0) },
            directory: information.pointee.capath.map { String(cString: $0) })
    }()

    init(file: String?, directory: String?) {
        self.file = file
        guard let directory else {
            (needsDirectory, hasCompleteDirectory) = (false, false)
            return
        }
        guard let file, let bundle = Self.certificates(in: file) else {
            (needsDirectory, hasCompleteDirectory) = (true, true)
            return
        }
        let names =
            (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []  // unreadable: adds no certificate
        // A file that cannot be read is skipped, because OpenSSL cannot load it either.
        let found = names.filter(Self.isHashed).reduce(into: Set<[UInt8]>()) { found, name in
            found.formUnion(Self.certificates(in: directory + "/" + name) ?? [])
        }
        needsDirectory = !found.isSubset(of: bundle)
        hasCompleteDirectory = bundle.isSubset(of: found)
    }

    /// Returns whether OpenSSL looks up the name: eight hexadecimal digits, a period and a number.
    private static func isHashed(_ name: String) -> Bool {
        let parts = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].count == 8, !parts[1].isEmpty else { return false }
        let (hash, number) = (parts[0], parts[1])
        return hash.allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
            && number.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// Returns the certificates of a PEM file (RFC 7468); `nil` if the file cannot be read.
    ///
    /// Each element consists of the first line and the Base64 data without line breaks.
    private static func certificates(in path: String) -> Set<[UInt8]>? {
        guard let data = FileManager.default.contents(atPath: path) else { return nil }
        var certificates: Set<[UInt8]> = []
        var certificate: [UInt8]?
        for line in Array(data).split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            if line.starts(with: "-----BEGIN ".utf8) {
                certificate = Array(line)
            } else if line.starts(with: "-----END ".utf8) {
                if let certificate { certificates.insert(certificate) }
                certificate = nil
            } else {
                certificate?.append(contentsOf: line)
            }
        }
        return certificates
    }
}
