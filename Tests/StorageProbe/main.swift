import Foundation
import WebServiceCore

#if WEBSERVICE_SQLITE
import WebServiceSQLite
#endif

// Writes to a storage in a process of its own, for tests that kill it and for several processes on one storage:
//
//     storage-probe sqlite|file PATH write COUNT SEED      writes entries, and prints `ack N` when entry N is stored
//     storage-probe sqlite|file PATH fill COUNT SEED       the same with short entries of keys of its own, and prints `done` at the end
//
// The exit status is 0, 1 when something was thrown, and 2 for wrong arguments.

let arguments = Array(CommandLine.arguments.dropFirst())

func makeStorage(_ kind: String, _ path: String) throws -> (any ResponseStorage)? {
    switch kind {
    case "file": return try FileStorage(folder: URL(fileURLWithPath: path, isDirectory: true))
    #if WEBSERVICE_SQLITE
    case "sqlite": return try SQLiteStorage(file: URL(fileURLWithPath: path))
    #endif
    default: return nil
    }
}

/// Written at once, because the next thing may be the end of the process.
func tell(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

/// What entry `number` holds: its number, the seed, its length, and bytes that follow from these, 0 to 20 KB of them.
func payload(_ number: Int, _ seed: Int) -> Data {
    let length = (number &* 7919 &+ seed &* 104_729) % 20_480
    let pattern = UInt8(truncatingIfNeeded: number &* 31 &+ seed)
    return Data("\(number) \(seed) \(length)\n".utf8) + Data(repeating: pattern, count: length)
}

do {
    guard arguments.count == 5, let storage = try makeStorage(arguments[0], arguments[1]), let count = Int(arguments[3]),
        let seed = Int(arguments[4]), ["write", "fill"].contains(arguments[2])
    else {
        print("storage-probe sqlite|file PATH write|fill COUNT SEED")
        exit(2)
    }
    for number in 0..<count {
        if arguments[2] == "write" {
            try await storage.store(StorageEntry(.raw(payload(number, seed)), date: Date()), for: StorageKey(identifier: "entry \(number % 16)"))
            tell("ack \(number)")
        } else {
            try await storage.store(
                StorageEntry(.raw(Data("\(seed) \(number)".utf8)), date: Date()), for: StorageKey(identifier: "\(seed)/\(number)"))
        }
    }
    if arguments[2] == "fill" { tell("done") }
} catch {
    tell("failed: \(error)")
    exit(1)
}
