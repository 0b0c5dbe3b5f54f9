#if !canImport(CryptoKit)
import CCrypto
import Foundation
import WebServiceCore

extension GCM {
    private static let nonceCount = 12
    private static let tagCount = 16

    /// - Parameter nonce: The nonce; `nil` for a random one.
    static func seal(
        _ data: Data, authenticating context: Data, key: Data, nonce: Data?
    ) throws(WebServiceError) -> Data {
        let nonce = if let nonce { nonce } else { try randomNonce() }
        let cipher = try CipherContext(key: key, nonce: nonce, isSealing: true)
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
        let cipher = try CipherContext(key: key, nonce: sealed.prefix(nonceCount), isSealing: false)
        try cipher.authenticate(context)
        let ciphertext = sealed.dropFirst(nonceCount).dropLast(tagCount)
        var data = Data(count: ciphertext.count)
        try cipher.process(ciphertext, into: &data, at: 0)
        try cipher.setTag(sealed.suffix(tagCount))
        return try cipher.finish() ? data : nil
    }

    private static func randomNonce() throws(WebServiceError) -> Data {
        var nonce = Data(count: nonceCount)
        let status = nonce.withUnsafeMutableBytes {
            RAND_bytes($0.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32($0.count))
        }
        guard status == 1 else { throw CipherContext.failure("RAND_bytes") }
        return nonce
    }
}

/// The state of libcrypto for the encryption or decryption of one entry.
private final class CipherContext {
    /// The maximum number of bytes per call, because libcrypto counts them as `int`.
    private static let mostBytes = 1 << 30

    private let context: OpaquePointer
    private let isSealing: Bool

    init(key: Data, nonce: Data, isSealing: Bool) throws(WebServiceError) {
        guard let context = EVP_CIPHER_CTX_new() else { throw Self.failure("EVP_CIPHER_CTX_new") }
        self.context = context
        self.isSealing = isSealing
        let (key, nonce) = (Array(key), Array(nonce))  // 12 bytes are the default of the cipher
        guard EVP_CipherInit_ex(context, EVP_aes_256_gcm(), nil, key, nonce, isSealing ? 1 : 0) == 1 else {
            throw Self.failure("EVP_CipherInit_ex")
        }
    }

    deinit { EVP_CIPHER_CTX_free(context) }

    /// Authenticates data that is not encrypted.
    func authenticate(_ data: Data) throws(WebServiceError) {
        guard update(data, to: { _ in nil }) else { throw Self.failure("EVP_CipherUpdate") }
    }

    /// Encrypts or decrypts data.
    func process(_ data: Data, into output: inout Data, at start: Int) throws(WebServiceError) {
        let isDone = output.withUnsafeMutableBytes { output in
            update(data) { output.baseAddress?.advanced(by: start + $0) }
        }
        guard isDone else { throw Self.failure("EVP_CipherUpdate") }
    }

    /// - Parameter target: Returns the place for the output at an offset; `nil` for no output.
    private func update(_ data: Data, to target: (_ offset: Int) -> UnsafeMutableRawPointer?) -> Bool {
        data.withUnsafeBytes { data in
            var offset = 0
            while offset < data.count {
                let part = UnsafeRawBufferPointer(rebasing: data[offset...].prefix(Self.mostBytes))
                var count: Int32 = 0
                let status = EVP_CipherUpdate(
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
        guard EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tag.count), &tag) == 1 else {
            throw Self.failure("EVP_CTRL_AEAD_SET_TAG")
        }
    }

    func copyTag(into output: inout Data, at start: Int, count: Int) throws(WebServiceError) {
        let status = output.withUnsafeMutableBytes {
            EVP_CIPHER_CTX_ctrl(
                context, EVP_CTRL_AEAD_GET_TAG, Int32(count), $0.baseAddress?.advanced(by: start))
        }
        guard status == 1 else { throw Self.failure("EVP_CTRL_AEAD_GET_TAG") }
    }

    /// - Returns: `false` if decrypted data is not authentic.
    func finish() throws(WebServiceError) -> Bool {
        var (rest, count) = ([UInt8](repeating: 0, count: 16), 0 as Int32)
        guard EVP_CipherFinal_ex(context, &rest, &count) == 1 else {
            guard !isSealing else { throw Self.failure("EVP_CipherFinal_ex") }
            ERR_clear_error()
            return false
        }
        return true
    }

    static func failure(_ function: String) -> WebServiceError {
        var name = [CChar](repeating: 0, count: 256)
        ERR_error_string_n(ERR_get_error(), &name, name.count)
        ERR_clear_error()
        let text = name.withUnsafeBytes { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        return WebServiceError(.storage, "libcrypto failed in \(function): \(text)")
    }
}
#endif
