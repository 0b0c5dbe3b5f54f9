import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceSQLite
import WebServiceServer
import WebServiceStorage

@Suite("Storages of several processes", .permit)
struct ProcessTests {
    private static let count = amount(200, thorough: 1_000, soak: 10_000)

    @Test(
        "Four processes write separate and shared entries in one folder, and none fails, is lost or is torn"
    )
    func files() async throws {
        try await withScratchFolder { folder in
            try await withThrowingTaskGroup { group in
                for seed in 0..<4 {
                    group.addTask {
                        let lines = try await blocking {
                            try Probe(["file", folder.path, "fill", "\(Self.count)", "\(seed)"]).lines()
                        }
                        #expect(lines == ["done"])
                    }
                    group.addTask {
                        let lines = try await blocking {
                            try Probe(["file", folder.path, "write", "\(Self.count / 4)", "\(seed)"]).lines()
                        }
                        #expect(lines.count == Self.count / 4)
                        #expect(lines.last == "ack \(Self.count / 4 - 1)")
                    }
                }
                try await group.waitForAll()
            }
            let storage = try FileStorage(folder: folder)
            var missing = 0
            for seed in 0..<4 {
                for number in 0..<Self.count {
                    if try await storage.text(StorageKey(identifier: "\(seed)/\(number)")) != "\(seed) \(number)" {
                        missing += 1
                    }
                }
            }
            #expect(missing == 0)
            for index in 0..<16 {
                let data = try #require(try await storage.entry(for: StorageKey(identifier: "entry \(index)"))?.data)
                let head = String(decoding: data.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self).split(
                    separator: " "
                ).compactMap { Int($0) }
                try #require(head.count == 3)
                #expect(head[0] % 16 == index)
                #expect(head[0] >= Self.count / 4 - 16)
                #expect(data.count == "\(head[0]) \(head[1]) \(head[2])\n".utf8.count + head[2])
            }
            #expect(try names(in: folder).count == 4 * Self.count + 16)
        }
    }

    #if os(Linux)
    @Test(
        "A forked process opens new connections and files, and both processes write to one storage",
        arguments: ["sqlite", "file"])
    func fork(kind: String) async throws {
        try await withScratchFolder { folder in
            let path = kind == "file" ? folder.path : folder.appendingPathComponent("a.db").path
            let (lines, status) = try await blocking {
                let probe = try Probe([kind, path, "fork", "200", "7"])
                return (try probe.lines(), probe.process.waitUntilExit())
            }
            #expect(lines == ["done"])
            #expect(status == 0)
            guard kind == "sqlite" else { return }
            #expect(try Foreigner(folder.appendingPathComponent("a.db")).value("PRAGMA integrity_check") == "ok")
        }
    }
    #endif
}
