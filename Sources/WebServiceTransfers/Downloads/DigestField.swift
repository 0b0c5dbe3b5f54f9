import WebServiceCore
import WebServiceFields

/// The values of `Repr-Digest` and `Content-Digest` fields (RFC 9530).
enum DigestField {
    /// Returns the digests of known algorithms.
    ///
    /// The field is a dictionary of byte sequences. Unknown algorithms, digests of the wrong length
    /// and values that are not dictionaries are ignored.
    static func digests(_ value: String) -> [SHA2: [UInt8]] {
        var digests: [SHA2: [UInt8]] = [:]
        let members = StructuredField.dictionary(parsing: value) ?? [:]
        for algorithm in SHA2.allCases {
            guard let digest = members[algorithm.rawValue]?.item?.value.byteSequence, digest.count == algorithm.length
            else { continue }
            digests[algorithm] = [UInt8](digest)
        }
        return digests
    }
}
