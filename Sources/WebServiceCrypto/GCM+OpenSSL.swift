#if !canImport(CryptoKit)
import Foundation
import SystemCrypto
import WebServiceCore

extension GCM {
    private static let nonceCount = 12
    private static let tagCount = 16

    /// - Parameter nonce: The nonce; `nil` for a random nonce.
    static func seal(
        _ data: Data, authenticating context: Data, key: Data, nonce: Data?
    ) throws(WebServiceError) -> Data {
        let library = try Libcrypto.loaded()
        let nonce = if let nonce { nonce } else { try randomNonce(library) }
        let cipher = try CipherContext(library, key: key, nonce: nonce, isSealing: true)
        try cipher.authenticate(context)
        var sealed = Data(count: nonceCount + data.count + tagCount)
        sealed.replaceSubrange(..<nonceCount, with: nonce)
        try cipher.process(data, into: &sealed, at: nonceCount)
        _ = try cipher.finish()
        try cipher.copyTag(into: &sealed, at: nonceCount + data.count, count: tagCount)
        return sealed
    }

    /// - Returns: `nil` if the data is not authentic.
    static func open(_ sealed: Data, authenticating context: Data, key: Data) throws(WebServiceError) -> Data? {
        guard sealed.count >= nonceCount + tagCount else { return nil }
        let cipher = try CipherContext(
            try Libcrypto.loaded(), key: key, nonce: sealed.prefix(nonceCount), isSealing: false)
        try cipher.authenticate(context)
        let ciphertext = sealed.dropFirst(nonceCount).dropLast(tagCount)
        var data = Data(count: ciphertext.count)
        try cipher.process(ciphertext, into: &data, at: 0)
        try cipher.setTag(sealed.suffix(tagCount))
        return try cipher.finish() ? data : nil
    }

    private static func randomNonce(_ library: Libcrypto) throws(WebServiceError) -> Data {
        var nonce = Data(count: nonceCount)
        let status = nonce.withUnsafeMutableBytes {
            library.randomize($0.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32($0.count))
        }
        guard status == 1 else { throw library.failure("RAND_bytes") }
        return nonce
    }
}

/// The state of libcrypto while it encrypts or decrypts one entry.
private final class CipherContext {
    /// The maximum number of bytes per call. It is limited because libcrypto counts bytes as `int`.
    private static let mostBytes = 1 << 30
    /// The values of `EVP_CTRL_AEAD_GET_TAG` and `EVP_CTRL_AEAD_SET_TAG`, which are the same in all
    /// versions.
    private static let (returnsTag, setsTag): (CInt, CInt) = (0x10, 0x11)

    private let library: Libcrypto
    private let context: OpaquePointer
    private let isSealing: Bool

    init(_ library: Libcrypto, key: Data, nonce: Data, isSealing: Bool) throws(WebServiceError) {
        guard let context = library.makeContext() else { throw library.failure("EVP_CIPHER_CTX_new") }
        self.library = library
        self.context = context
        self.isSealing = isSealing
        let (key, nonce) = (Array(key), Array(nonce))  // the cipher expects 12 bytes by default
        guard library.begin(context, library.aes256GCM(), nil, key, nonce, isSealing ? 1 : 0) == 1 else {
            throw library.failure("EVP_CipherInit_ex")
        }
    }

    deinit { library.releaseContext(context) }

    /// Authenticates data that is not encrypted.
    func authenticate(_ data: Data) throws(WebServiceError) {
        guard update(data, to: { _ in nil }) else { throw library.failure("EVP_CipherUpdate") }
    }

    /// Encrypts or decrypts data.
    func process(_ data: Data, into output: inout Data, at start: Int) throws(WebServiceError) {
        let isDone = output.withUnsafeMutableBytes { output in
            update(data) { output.baseAddress?.advanced(by: start + $0) }
        }
        guard isDone else { throw library.failure("EVP_CipherUpdate") }
    }

    /// - Parameter target: Returns the place for the output at an offset, or `nil` if there is no
    ///   output.
    private func update(_ data: Data, to target: (_ offset: Int) -> UnsafeMutableRawPointer?) -> Bool {
        data.withUnsafeBytes { data in
            var offset = 0
            while offset < data.count {
                let part = UnsafeRawBufferPointer(rebasing: data[offset...].prefix(Self.mostBytes))
                var count: Int32 = 0
                let status = library.update(
                    context, target(offset)?.assumingMemoryBound(to: UInt8.self), &count,
                    part.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(part.count))
                guard status == 1, Int(count) == part.count else { return false }
                offset += part.count
            }
            return true
        }
    }

    func setTag(_ tag: Data) throws(WebServiceError) {
        var tag = Array(tag)
        guard library.control(context, Self.setsTag, Int32(tag.count), &tag) == 1 else {
            throw library.failure("EVP_CTRL_AEAD_SET_TAG")
        }
    }

    func copyTag(into output: inout Data, at start: Int, count: Int) throws(WebServiceError) {
        let status = output.withUnsafeMutableBytes {
            library.control(
                context, Self.returnsTag, Int32(count), $0.baseAddress?.advanced(by: start))
        }
        guard status == 1 else { throw library.failure("EVP_CTRL_AEAD_GET_TAG") }
    }

    /// - Returns: `false` if the decrypted data is not authentic.
    func finish() throws(WebServiceError) -> Bool {
        var (rest, count) = ([UInt8](repeating: 0, count: 16), 0 as Int32)
        guard library.finish(context, &rest, &count) == 1 else {
            guard !isSealing else { throw library.failure("EVP_CipherFinal_ex") }
            library.clearErrors()
            return false
        }
        return true
    }
}

extension Libcrypto {
    /// Returns the library.
    ///
    /// - Throws: `WebServiceError.Code.storage` if the library is missing.
    fileprivate static func loaded() throws(WebServiceError) -> Libcrypto {
        guard let shared else {
            throw WebServiceError(.storage, "libcrypto cannot be loaded; install OpenSSL 1.1.1 or 3 (libssl3)")
        }
        return shared
    }

    /// Returns the error of a function that failed.
    fileprivate func failure(_ function: String) -> WebServiceError {
        var name = [CChar](repeating: 0, count: 256)
        errorText(nextError(), &name, name.count)
        clearErrors()
        let text = name.withUnsafeBytes { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        return WebServiceError(.storage, "libcrypto failed in \(function): \(text)")
    }
}
#endif
