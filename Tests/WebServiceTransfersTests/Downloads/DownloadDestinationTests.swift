import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceTransfers

@Suite("Folders of destinations", .permit)
struct DownloadDestinationTests {
    @Test("Concurrent downloads may create the same folders")
    func concurrent() async throws {
        let folder = TemporaryFolder.forTest()
        let path = folder.url.appendingPathComponent("a/b/c/d", isDirectory: true)
        let destination = try DownloadDestination(folder: path, name: "x")
        await withTaskGroup { group in
            for _ in 0..<8 {
                group.addTask { #expect(throws: Never.self) { try destination.createFolder(synchronize: true) } }
            }
        }
        #expect(FileManager.default.fileExists(atPath: path.path))
    }

    @Test("A path with a component that is too long is an error that names it")
    func longName() throws {
        let folder = TemporaryFolder.forTest()
        let long = folder.url.appendingPathComponent(String(repeating: "x", count: 300))
        let destination = try DownloadDestination(folder: long.appendingPathComponent("b"), name: "x")
        let error = #expect(throws: WebServiceError.self) { try destination.createFolder(synchronize: false) }
        #expect(error?.message.contains("the folder \(long.path) could not be created") == true)
        #expect((error?.underlying as? POSIXError)?.code == .ENAMETOOLONG)
    }

    #if canImport(Glibc)
    @Test("A folder without permission is an error that names the folder that is missing")
    func permission() throws {
        let folder = TemporaryFolder.forTest()
        try FileManager.default.setAttributes([.posixPermissions: 0o555], ofItemAtPath: folder.url.path)
        let missing = folder.url.appendingPathComponent("a")
        let destination = try DownloadDestination(folder: missing.appendingPathComponent("b"), name: "x")
        // The user of this thread only, because permissions do not apply to root.
        let symbol = try #require(dlsym(nil, "setfsuid"))
        let setUser = unsafeBitCast(symbol, to: (@convention(c) (UInt32) -> Int32).self)
        let user = setUser(65_534)
        let error = #expect(throws: WebServiceError.self) { try destination.createFolder(synchronize: false) }
        _ = setUser(UInt32(bitPattern: user))
        #expect(error?.message.contains("the folder \(missing.path) could not be created") == true)
        #expect((error?.underlying as? POSIXError)?.code == .EACCES)
        #expect(!FileManager.default.fileExists(atPath: missing.path))
    }
    #endif
}
