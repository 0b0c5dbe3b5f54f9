import Foundation
import WebServiceCore
import WebServiceStorage

#if os(Linux) && canImport(Glibc)
/// Runs the jobs of one task on the thread that waits for it.
///
/// After a fork, the threads of Swift's pool do not exist in the child process.
private final class WaitingExecutor: TaskExecutor {
    private let jobs = WebServiceCore.Mutex<[UnownedJob]>([])
    private let arrivals = DispatchSemaphore(value: 0)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
        arrivals.signal()
    }

    /// Runs jobs until the task has completed.
    func wait(for body: @escaping @Sendable () async throws -> Void) throws {
        let result = WebServiceCore.Mutex<Result<Void, any Error>?>(nil)
        Task(executorPreference: self) {
            let outcome: Result<Void, any Error>
            do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
            result.withLock { $0 = outcome }
        }
        while result.withLock({ $0 == nil }) {
            arrivals.wait()
            if let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
                job.runSynchronously(on: asUnownedTaskExecutor())
            }
        }
        try result.withLock { $0 }?.get()
    }
}

/// Writes entries of two seeds: some before the fork, the others in both processes concurrently.
///
/// Both processes read the entries that the other has written.
///
/// - Returns: The exit status: 0 for success, 4 if the child process has failed, 5 if the child
///   uses descriptors of its parent, or 6 if an entry is missing.
func writeInFork(_ storage: any ResponseStorage, _ count: Int, _ seed: Int) async throws -> Int32 {
    @Sendable func write(_ range: Range<Int>, _ seed: Int) async throws {
        for number in range {
            try await storage.store(
                StorageEntry(.raw(Data("\(seed) \(number)".utf8)), date: Date(timeIntervalSince1970: 0)),
                for: StorageKey(identifier: "\(seed)/\(number)"))
        }
    }
    @Sendable func missing(_ range: Range<Int>, _ seed: Int) async throws -> Int {
        var missing = 0
        for number in range {
            let found = try await storage.entry(for: StorageKey(identifier: "\(seed)/\(number)"))?.data
            if found != Data("\(seed) \(number)".utf8) { missing += 1 }
        }
        return missing
    }
    try await write(0..<count, seed)
    _ = try await missing(0..<1, seed)
    // Swift does not import `fork`, because few functions are safe in the child of a multithreaded
    // process.
    guard let symbol = dlsym(nil, "fork") else { return 1 }
    let fork = unsafeBitCast(symbol, to: (@convention(c) () -> Int32).self)
    let child = fork()
    if child == 0 {
        var status: Int32 = 0
        let inherited = databaseDescriptors()
        do {
            try WaitingExecutor().wait {
                if try await missing(0..<count, seed) > 0 { throw POSIXError(.ENOENT) }
                try await write(0..<count, seed + 1)
                if try await missing(0..<count, seed + 1) > 0 { throw POSIXError(.ENOENT) }
            }
            if !inherited.isEmpty, databaseDescriptors().subtracting(inherited).isEmpty { status = 5 }
        } catch {
            status = 4
        }
        _exit(status)
    }
    try await write(count..<2 * count, seed)
    var status: Int32 = 0
    var hasEnded = false
    for _ in 0..<6_000 where !hasEnded {
        hasEnded = waitpid(child, &status, WNOHANG) != 0
        if !hasEnded { poll(nil, 0, 10) }
    }
    guard hasEnded else {
        kill(child, SIGKILL)
        return 4
    }
    guard status == 0 else { return status & 0x7F == 0 ? status >> 8 & 0xFF : 4 }
    let lost = try await missing(0..<2 * count, seed) + missing(0..<count, seed + 1)
    if lost == 0 { tell("done") }
    return lost == 0 ? 0 : 6
}

/// Returns the descriptors of databases that are open in the process.
private func databaseDescriptors() -> Set<Int32> {
    Set(
        (0..<1024).filter { (number: Int32) in
            var path = [CChar](repeating: 0, count: 4096)
            let length = readlink("/proc/self/fd/\(number)", &path, path.count - 1)
            return length > 0
                && String(decoding: path[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self).hasSuffix(".db")
        })
}
#else
func writeInFork(_ storage: any ResponseStorage, _ count: Int, _ seed: Int) async throws -> Int32 { 2 }
#endif
