import Foundation
import TestSupport
import Testing
import WebServiceCaching
import WebServiceCore
import WebServiceCrypto
import WebServiceEndpoints
import WebServiceMocking
import WebServiceStorage

// Snippets about encrypted storages in Cookbook.md and the article, with their expected behavior.
// `DocumentationTests` verifies that none is missing.

@Suite("Snippets about encryption", .permit)
struct CryptoSnippets {
    private let mock = MockService()
    private var service: WebService { mock.service }

    private func folder() -> URL { TemporaryFolder.forTest().url }

    @Test("Values and cached responses are encrypted")
    func encryption() async throws {
        let folder = folder()
        mock.on(.GET, "/brewers", .text("[]").header(.cacheControl, "max-age=60"))
        let key = Data((0..<32).map { _ in UInt8.random(in: .min ... .max) })
        let cipher = try AESGCMCipher(key: key)
        let values = try FileStorage(folder: folder.appendingPathComponent("values"))
        let responses = try FileStorage(folder: folder.appendingPathComponent("cache"))
        service.storages = [EncryptedStorage(values, cipher: cipher)]
        service.interceptors = [
            ResponseCache(storage: EncryptedStorage(responses, cipher: cipher), account: { "ann" })
        ]
        _ = try await service.perform(BrewersRequest(state: "vermont")).value
        #expect(try await service.stored(BrewersRequest(state: "vermont")).value.value.isEmpty)
    }

    @Test("A storage is encrypted, also with a new key")
    func storages() async throws {
        let folder = folder()
        let key = Data(repeating: 1, count: 32)
        do {
            let cipher = try AESGCMCipher(key: key)
            service.storages = [EncryptedStorage(try FileStorage(folder: folder), cipher: cipher)]
        }
        let entry = StorageEntry(.raw(Data("ale".utf8)), date: nil)
        try await service.storages[0].store(entry, for: StorageKey(identifier: "a"))
        let (oldKey, newKey) = (key, Data(repeating: 2, count: 32))
        let cipher = try AESGCMCipher(key: newKey, earlierKeys: [oldKey])
        let storage = EncryptedStorage(try FileStorage(folder: folder), cipher: cipher) { failure in
            print("not used: \(failure.error)")
        }
        #expect(try await storage.entry(for: StorageKey(identifier: "a"))?.data == Data("ale".utf8))
    }
}
