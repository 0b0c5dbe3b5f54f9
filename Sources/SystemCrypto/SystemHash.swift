package import WebServiceCore

/// A hash function (FIPS 180-4).
package enum HashFunction: String, Sendable, CaseIterable {
    case sha1, sha256, sha512
}

/// A hash that is computed piece by piece with the system's library: CryptoKit on Apple platforms,
/// and libcrypto on all others.
///
/// If libcrypto is missing, the implementations of `WebServiceCore` are used.
package final class SystemHash {
    private enum Implementation {
        #if !canImport(CryptoKit)
        case library(LibraryHash)
        #endif
        case sha1(SHA1)
        case sha2(RunningHash)
    }

    private var implementation: Implementation

    package init(_ function: HashFunction, usesLibrary: Bool = true) {
        #if !canImport(CryptoKit)
        if usesLibrary, let library = Libcrypto.shared, let hash = LibraryHash(library, function) {
            implementation = .library(hash)
            return
        }
        #endif
        implementation =
            switch function {
            case .sha1: .sha1(SHA1())
            case .sha256: .sha2(RunningHash(.sha256))
            case .sha512: .sha2(RunningHash(.sha512))
            }
    }

    package convenience init(_ algorithm: SHA2) {
        self.init(algorithm == .sha256 ? HashFunction.sha256 : .sha512)
    }

    package func update(_ bytes: UnsafeRawBufferPointer) {
        switch implementation {
        #if !canImport(CryptoKit)
        case .library(let hash): hash.update(bytes)
        #endif
        case .sha1(var hash):
            hash.update(bytes)
            implementation = .sha1(hash)
        case .sha2(var hash):
            hash.update(bytes)
            implementation = .sha2(hash)
        }
    }

    /// Returns the hash of all pieces. Call it once, after the last piece.
    ///
    /// - Returns: The hash, or an empty array, which differs from every hash, if libcrypto has
    ///   failed.
    package func finish() -> [UInt8] {
        switch implementation {
        #if !canImport(CryptoKit)
        case .library(let hash): hash.finish()
        #endif
        case .sha1(let hash): hash.value
        case .sha2(let hash): hash.value
        }
    }
}

#if !canImport(CryptoKit)
/// A hash that libcrypto computes.
private final class LibraryHash {
    /// The length of the longest hash, in bytes (`EVP_MAX_MD_SIZE`).
    private static let maximumLength = 64

    private let library: Libcrypto
    private let context: OpaquePointer
    private var isValid = true

    /// - Returns: `nil` if the library does not provide the function.
    init?(_ library: Libcrypto, _ function: HashFunction) {
        guard let context = library.makeHash() else { return nil }
        guard let function = library.hashFunctions[function]?(), library.beginHash(context, function, nil) == 1 else {
            library.releaseHash(context)
            library.clearErrors()
            return nil
        }
        (self.library, self.context) = (library, context)
    }

    deinit { library.releaseHash(context) }

    func update(_ bytes: UnsafeRawBufferPointer) {
        if !bytes.isEmpty, library.updateHash(context, bytes.baseAddress, bytes.count) != 1 { isValid = false }
    }

    func finish() -> [UInt8] {
        var hash = [UInt8](repeating: 0, count: Self.maximumLength)
        var count: CUnsignedInt = 0
        guard isValid, library.finishHash(context, &hash, &count) == 1 else {
            library.clearErrors()
            return []
        }
        return Array(hash.prefix(Int(count)))
    }
}
#endif
