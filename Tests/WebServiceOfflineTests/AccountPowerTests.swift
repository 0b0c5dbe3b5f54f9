import Foundation
import TestSupport
import Testing
import WebServiceServer

@testable import WebServiceOffline

@Suite(
    "The power fails after processes that open an account and log out were killed",
    .enabled(if: VolatileDisk.works, "requires a C compiler, and no sanitizer"), .permit)
struct AccountPowerTests {
    /// Runs a program that opens an account, writes files and logs out.
    ///
    /// - Parameter environment: The environment, which may end the program before one of its
    ///   changes.
    /// - Returns: Whether the program was not killed.
    private func logOut(_ folder: URL, _ environment: [String: String]) async throws -> Bool {
        let process = ChildProcess(
            programPath("outbox-probe"), ["log-out", folder.path],
            environment: ["SWIFT_BACKTRACE": "enable=no"].merging(environment) { $1 }, input: .null, output: .null,
            errors: .null)
        return try await blocking {
            try process.run()
            return process.waitUntilExit() == 0
        }
    }

    /// Returns the number of the first change before which a killed program leaves a file that
    /// identifies an account. That change has not been flushed.
    private func firstKill(leaving mark: String) async throws -> Int {
        for number in 1...200 {
            let disk = try VolatileDisk()
            let folder = disk.folder.appendingPathComponent("anna")
            _ = try await logOut(folder, disk.environment(endingBefore: number))
            if FileManager.default.fileExists(atPath: folder.appendingPathComponent(mark).path) { return number }
        }
        throw POSIXError(.ENOENT)
    }

    @Test(
        "The next process flushes the name of the account's file before it makes other changes",
        arguments: [".account", ".logged-out"])
    func killedTwice(_ mark: String) async throws {
        let first = try await firstKill(leaving: mark)
        for second in 1...12 {
            let disk = try VolatileDisk()
            let folder = disk.folder.appendingPathComponent("anna")
            #expect(try await !logOut(folder, disk.environment(endingBefore: first)))
            let content = try Data(contentsOf: folder.appendingPathComponent(mark))
            #expect(try await !logOut(folder, disk.environment(endingBefore: second)))
            try disk.failExceptLastChanges()
            // An account that is not logged out has all its files.
            let account = folder.appendingPathComponent(".account")
            if mark == ".logged-out", (try? Data(contentsOf: account)) == content {  // missing
                #expect(try names(in: folder) == [".account", "a", "cookies.json"], "change \(second)")
            }
            #expect(throws: Never.self, "change \(second)") { try Account(in: folder) }
        }
    }
}
