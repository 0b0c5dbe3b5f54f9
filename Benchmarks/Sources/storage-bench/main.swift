// Compares the storages with their floors, both in C: a loop over prepared statements of SQLite,
// and atomic writes of files. All cases run in one interleaved run. A ratio is relative to the
// first line of its table, the floor: 1.00 is as fast as the floor.

import Foundation
import SQLiteFloor
import Synchronization
import WebServiceCore
import WebServiceSQLite
import WebServiceStorage

let quick = CommandLine.arguments.contains("--quick")
let rounds = quick ? 3 : 15
let operations = quick ? 500 : 5_000
/// `--only sqlite` runs only the tables whose names have this prefix, for profiling.
let only = CommandLine.arguments.firstIndex(of: "--only").flatMap { CommandLine.arguments.dropFirst($0 + 1).first }

/// A case to measure. It executes `count` operations one after another.
struct Case: Sendable {
    let name: String
    let run: @Sendable (_ count: Int) async throws -> Void
}

/// Runs all cases in turn for several rounds, so that changes in the speed of the machine affect
/// all of them equally. The first round is discarded.
func measure(_ title: String, _ cases: [Case], count: Int) async throws {
    guard only.map({ title.lowercased().hasPrefix($0) }) ?? true else { return }
    var samples = cases.map { _ in [Double]() }
    for round in 0...rounds {
        for (index, item) in cases.enumerated() {
            let start = DispatchTime.now().uptimeNanoseconds
            try await item.run(count)
            let elapsed = Double(DispatchTime.now().uptimeNanoseconds - start)
            if round > 0 { samples[index].append(elapsed / Double(count)) }
        }
    }
    print("\n\(title)")
    for (index, item) in cases.enumerated() {
        let ratio = median(zip(samples[index], samples[0]).map { $1 / $0 })
        let name = item.name.padding(toLength: 46, withPad: " ", startingAt: 0)
        print("  \(name)\(String(format: "%9.3f µs   %6.2f ×", median(samples[index]) / 1000, ratio))")
    }
}

func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    let middle = sorted.count / 2
    return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
    "storage-bench.\(UUID().uuidString)", isDirectory: true)
try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
let payload = Data((0..<1024).map { UInt8(truncatingIfNeeded: $0 &* 31) })
/// A thousand keys, so that writes replace entries and reads find them.
let keys = (0..<1000).map { StorageKey(identifier: "https://example.com/v1/brewers/\($0)") }

struct Broken: Error {}

func write(_ storage: any ResponseStorage, _ count: Int) async throws {
    for number in 0..<count {
        try await storage.store(StorageEntry(.raw(payload), date: Date()), for: keys[number % keys.count])
    }
}

func read(_ storage: any ResponseStorage, _ count: Int) async throws {
    for number in 0..<count {
        guard try await storage.entry(for: keys[number % keys.count])?.data?.count == payload.count else {
            throw Broken()
        }
    }
}

guard let opened = sqlite_floor_open(folder.appendingPathComponent("floor.db").path) else { throw Broken() }
/// The pointer of the floor, used by one case at a time.
struct Floor: @unchecked Sendable { let pointer: OpaquePointer }
let floor = Floor(pointer: opened)

func writeFloor(_ count: Int) throws {
    for number in 0..<count {
        let code = keys[number % keys.count].bytes.withUnsafeBufferPointer { key in
            payload.withUnsafeBytes { data in
                guard let key = UnsafeRawPointer(key.baseAddress), let bytes = data.baseAddress else {
                    return Int32(-1)
                }
                return sqlite_floor_write(
                    floor.pointer, key, Int32(keys[number % keys.count].bytes.count), bytes, Int32(data.count))
            }
        }
        guard code == 0 else { throw Broken() }
    }
}

func readFloor(_ count: Int) throws {
    for number in 0..<count {
        let size = keys[number % keys.count].bytes.withUnsafeBytes { key in
            key.baseAddress.map { sqlite_floor_read(floor.pointer, $0, Int32(key.count)) }
        }
        guard size == 1024 else { throw Broken() }
    }
}

let paths = keys.map { folder.appendingPathComponent("floor-\($0.fileName)").path }
let temporary = folder.appendingPathComponent("floor-new").path

func writeFiles(_ count: Int) throws {
    for number in 0..<count {
        let code = payload.withUnsafeBytes { data in
            data.baseAddress.map { file_floor_write(paths[number % paths.count], temporary, $0, data.count) }
        }
        guard code == 0 else { throw Broken() }
    }
}

func readFiles(_ count: Int) throws {
    for number in 0..<count {
        guard file_floor_read(paths[number % paths.count]) == 1024 else { throw Broken() }
    }
}

/// The minimum for a storage in memory.
final class LockedDictionary: Sendable {
    private let entries = Mutex<[StorageKey: StorageEntry]>([:])

    func entry(_ key: StorageKey) -> StorageEntry? { entries.withLock { $0[key] } }

    func store(_ entry: StorageEntry, for key: StorageKey) { entries.withLock { $0[key] = entry } }
}

let dictionary = LockedDictionary()
for key in keys { dictionary.store(StorageEntry(.raw(payload), date: Date()), for: key) }

let sqlite: any ResponseStorage = try SQLiteStorage(file: folder.appendingPathComponent("storage.db"))
let limited: any ResponseStorage = try SQLiteStorage(
    file: folder.appendingPathComponent("limited.db"), maximumBytes: 900 << 10, maximumCount: 900)
let files: any ResponseStorage = try FileStorage(folder: folder.appendingPathComponent("files", isDirectory: true))
let memory: any ResponseStorage = MemoryStorage()

try writeFloor(keys.count)
try writeFiles(keys.count)
for storage in [sqlite, limited, files, memory] { try await write(storage, keys.count) }

try await measure(
    "SQLite, reads of 1 KB",
    [
        Case(name: "floor: prepared statement, one copy", run: readFloor),
        Case(name: "SQLiteStorage.entry(for:)") { try await read(sqlite, $0) },
    ], count: operations * 4
)
try await measure(
    "SQLite, writes of 1 KB that replace",
    [
        Case(name: "floor: prepared statement", run: writeFloor),
        Case(name: "SQLiteStorage.store(_:for:)") { try await write(sqlite, $0) },
        Case(name: "SQLiteStorage.store(_:for:), limits exceeded") { try await write(limited, $0) },
    ], count: operations
)
try await measure(
    "Files, reads of 1 KB",
    [
        Case(name: "floor: open, fstat, read, close", run: readFiles),
        Case(name: "FileStorage.entry(for:)") { try await read(files, $0) },
    ], count: operations
)
try await measure(
    "Files, writes of 1 KB that replace",
    [
        Case(name: "floor: open, write, close, rename", run: writeFiles),
        Case(name: "FileStorage.store(_:for:)") { try await write(files, $0) },
    ], count: operations / 5
)
try await measure(
    "Memory, a hit of 1 KB",
    [
        Case(name: "floor: Dictionary under a lock") { count in
            for number in 0..<count {
                guard dictionary.entry(keys[number % keys.count])?.data?.count == payload.count else { throw Broken() }
            }
        },
        Case(name: "MemoryStorage.entry(for:)") { try await read(memory, $0) },
    ], count: operations * 20
)

sqlite_floor_close(floor.pointer)
try FileManager.default.removeItem(at: folder)
