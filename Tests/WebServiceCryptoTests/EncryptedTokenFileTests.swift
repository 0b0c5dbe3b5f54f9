import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCrypto
import WebServiceStorage

@Suite("Encrypted token file", .permit)
struct EncryptedTokenFileTests {
    @Test("Tokens are read with the key, and with a newer cipher that has the key as an earlier one")
    func keys() async throws {
        let file = TemporaryFolder.forTest().url.appendingPathComponent("tokens")
        let (first, second) = (Data(repeating: 1, count: 32), Data(repeating: 2, count: 32))
        let tokens = TokenFile.Tokens(.bearer("secret-access"), refreshToken: "secret-refresh")
        try await TokenFile(file, cipher: AESGCMCipher(key: first)).store(tokens)
        #expect(try !Data(contentsOf: file).contains(Data("secret".utf8)))
        #expect(try await TokenFile(file, cipher: AESGCMCipher(key: first)).tokens() == tokens)
        let newer = try AESGCMCipher(key: second, earlierKeys: [first])
        #expect(try await TokenFile(file, cipher: newer).tokens() == tokens)
        let error = await #expect(throws: WebServiceError.self) {
            _ = try await TokenFile(file, cipher: AESGCMCipher(key: second)).tokens()
        }
        #expect(error?.code == .storage)
    }
}
