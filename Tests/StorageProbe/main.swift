import Foundation
import WebServiceCore
import WebServiceStorage

#if WEBSERVICE_SQLITE
import WebServiceSQLite
#endif

// Writes to a storage in a separate process, for tests that kill the process or use a storage from
// several processes:
//
//     storage-probe sqlite|file PATH write COUNT SEED  writes entries; prints `ack N` per entry
//     storage-probe sqlite|file PATH fill COUNT SEED   writes short entries; prints `done`
//     storage-probe sqlite|file PATH remove COUNT 0    removes entries; prints `ack N` per entry
//     storage-probe sqlite|file PATH step 0 0          reads, replaces and removes entries
//     storage-probe sqlite|file PATH fork COUNT SEED   forks, writes and reads; prints `done`
//     storage-probe tokens PATH store COUNT 0          stores tokens; prints `ack N` for each
//     storage-probe tokens PATH send COUNT PORT        sends requests with tokens
//
// `ack N` is printed after entry N is stored or removed, `done` at the end. `fill` uses a separate
// key for each entry. `remove` does not close the storage. `step` prints nothing and runs while
// system calls fail. `fork` writes and reads in both processes. `sqlite-power` and `file-power`
// select the durability `power`. The exit status is 0 for success, 1 for an error and 2 for wrong
// arguments; `steps(of:)` describes that of `step`.

let arguments = Array(CommandLine.arguments.dropFirst())

func makeStorage(_ kind: String, _ path: String) throws -> (any ResponseStorage)? {
    switch kind {
    case "file", "file-power":
        return try FileStorage(
            folder: URL(fileURLWithPath: path, isDirectory: true), durability: kind == "file" ? .process : .power)
    #if WEBSERVICE_SQLITE
    case "sqlite", "sqlite-power":
        return try SQLiteStorage(file: URL(fileURLWithPath: path), durability: kind == "sqlite" ? .process : .power)
    #endif
    default: return nil
    }
}

/// Writes a line without buffering, because the process may end before the next one.
func tell(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

/// Returns the data of entry `number`: the number, the seed, the length, and 0 to 20 KB of padding.
func payload(_ number: Int, _ seed: Int) -> Data {
    let length = (number &* 7919 &+ seed &* 104_729) % 20_480
    let pattern = UInt8(truncatingIfNeeded: number &* 31 &+ seed)
    return Data("\(number) \(seed) \(length)\n".utf8) + Data(repeating: pattern, count: length)
}

/// Reads `a`, replaces it, reads it, removes `b` and reads it, even if an earlier step failed.
///
/// - Returns: 64 plus a bit for each step that did not throw, or 3 if a step returned neither the
///   old nor the new value.
func steps(of storage: any ResponseStorage) async -> Int32 {
    var status: Int32 = 64
    let (a, b) = (StorageKey(identifier: "a"), StorageKey(identifier: "b"))
    let (old, new) = (Data(repeating: 1, count: 9_000), Data(repeating: 2, count: 7_000))
    func step(_ bit: Int32, _ body: () async throws -> Bool) async {
        do {
            if try await body() { status |= bit } else { status = 3 }
        } catch {
            // A failed system call leaves the bit of the step unset.
        }
    }
    await step(1) { try await storage.entry(for: a)?.data == old }
    await step(2) {
        try await storage.store(StorageEntry(.raw(new), date: Date(timeIntervalSince1970: 0)), for: a)
        return true
    }
    let isStored = status & 2 != 0
    await step(4) {
        let found = try await storage.entry(for: a)?.data
        return found == new || !isStored && found == old
    }
    await step(8) {
        try await storage.removeEntry(for: b)
        return true
    }
    let isRemoved = status & 8 != 0
    await step(16) {
        let found = try await storage.entry(for: b)?.data
        return found == nil || !isRemoved && found == Data("b".utf8)
    }
    return status
}

do {
    if arguments.count == 5, arguments[0] == "tokens", let count = Int(arguments[3]), let port = Int(arguments[4]) {
        let file = URL(fileURLWithPath: arguments[1])
        if arguments[2] == "send" { exit(try await send(count, tokensIn: file, port: port)) }
        try await store(count, tokensIn: file)
        exit(0)
    }
    guard arguments.count == 5, let storage = try makeStorage(arguments[0], arguments[1]),
        let count = Int(arguments[3]),
        let seed = Int(arguments[4]), ["write", "fill", "remove", "step", "fork"].contains(arguments[2])
    else {
        print("storage-probe sqlite|file[-power] PATH write|fill|remove|step|fork COUNT SEED")
        exit(2)
    }
    if arguments[2] == "step" { exit(await steps(of: storage)) }
    if arguments[2] == "fork" { exit(try await writeInFork(storage, count, seed)) }
    for number in 0..<count {
        if arguments[2] == "write" {
            try await storage.store(
                StorageEntry(.raw(payload(number, seed)), date: Date(timeIntervalSince1970: 0)),
                for: StorageKey(identifier: "entry \(number % 16)"))
            tell("ack \(number)")
        } else if arguments[2] == "remove" {
            try await storage.removeEntry(for: StorageKey(identifier: "entry \(number % 16)"))
            tell("ack \(number)")
        } else {
            try await storage.store(
                StorageEntry(.raw(Data("\(seed) \(number)".utf8)), date: Date(timeIntervalSince1970: 0)),
                for: StorageKey(identifier: "\(seed)/\(number)"))
        }
    }
    if arguments[2] == "fill" { tell("done") }
    if arguments[2] == "remove" { exit(0) }
} catch {
    tell("failed: \(error)")
    exit(1)
}
