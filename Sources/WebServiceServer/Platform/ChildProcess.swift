#if os(macOS) || os(Linux)
package import Foundation
import WebServiceCore

/// A process that this process starts and waits for.
///
/// If this process ends first, for any reason, a ``Guardian`` terminates the child.
///
/// This type replaces `Process` of Foundation because of two defects on Linux (Swift 6.3).
/// `Process` reads beyond a buffer if this process has more than about 1,300 open descriptors. It
/// also does not detect the end of a child while another one, which a different thread started at
/// the same time, is running (pull request 5472 of swift-corelibs-foundation).
package final class ChildProcess: Sendable {
    /// The target of a standard descriptor of the process.
    package enum Stream: Sendable {
        case inherited
        case null
        case file(FileHandle)
        /// A pipe. ``ChildProcess/run()`` closes the end that the child uses.
        case pipe(Pipe)
    }

    private enum State {
        case created
        case running(pid_t)
        /// The process has ended with this result of ``ChildProcess/waitUntilExit()``.
        case ended(Int32)
    }

    private let state = Mutex(State.created)
    private let executable: String
    private let arguments: [String]
    private let environment: [String: String]
    /// The standard descriptors and their targets.
    private let streams: [(Int32, Stream)]

    /// - Parameters:
    ///   - executable: The path of the program.
    ///   - environment: The environment. Defaults to that of this process.
    package init(
        _ executable: String, _ arguments: [String] = [],
        environment: [String: String] = ProcessInfo.processInfo.environment,
        input: Stream = .inherited, output: Stream = .inherited, errors: Stream = .inherited
    ) {
        (self.executable, self.arguments) = (executable, arguments)
        self.environment = Self.selectingLibcurl(environment, for: executable)
        streams = [(0, input), (1, output), (2, errors)]
    }

    /// Returns the environment with the libcurl that `scripts/test-libcurl` selects.
    ///
    /// Only the programs of this package, which are in one folder, use that libcurl. Other programs
    /// use the libraries of the system.
    private static func selectingLibcurl(_ environment: [String: String], for executable: String) -> [String: String] {
        guard let libraries = ProcessInfo.processInfo.environment["WEBSERVICE_LIBCURL"] else { return environment }
        func folder(_ path: String) -> URL {
            URL(fileURLWithPath: path).resolvingSymlinksInPath().deletingLastPathComponent()
        }
        var environment = environment
        let isOwn = folder(executable) == folder("/proc/self/exe")
        environment["LD_LIBRARY_PATH"] = isOwn ? libraries : nil
        environment["WEBSERVICE_LIBCURL"] = isOwn ? libraries : nil
        return environment
    }

    /// Starts the process. The process inherits only the standard descriptors, blocks no signals,
    /// and has the default action for each signal.
    package func run() throws {
        try run(inGroup: Guardian.shared?.group)
    }

    /// Starts the process in a process group.
    ///
    /// - Parameter group: A process group; 0 for a new one, and `nil` for that of this process.
    fileprivate func run(inGroup group: pid_t?) throws {
        #if canImport(Darwin)
        var (actions, attributes): (posix_spawn_file_actions_t?, posix_spawnattr_t?) = (nil, nil)
        #else
        var (actions, attributes) = (posix_spawn_file_actions_t(), posix_spawnattr_t())
        #endif
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        for (number, stream) in streams {
            switch stream {
            case .inherited:
                #if canImport(Darwin)
                posix_spawn_file_actions_addinherit_np(&actions, number)
                #endif
                break  // a descriptor that is closed remains closed
            case .null: posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_RDWR, 0)
            case .file(let file): posix_spawn_file_actions_adddup2(&actions, file.fileDescriptor, number)
            case .pipe(let pipe):
                posix_spawn_file_actions_adddup2(&actions, pipe.childEnd(number).fileDescriptor, number)
            }
        }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        #if canImport(Darwin)
        let others = POSIX_SPAWN_CLOEXEC_DEFAULT
        #else
        let others: Int32 = 0
        _ = Self.closeFrom?(&actions, 3)
        #endif
        posix_spawnattr_setpgroup(&attributes, group ?? 0)
        let joins = group == nil ? 0 : Int32(POSIX_SPAWN_SETPGROUP)
        posix_spawnattr_setflags(
            &attributes, Int16(Int32(POSIX_SPAWN_SETSIGMASK) | Int32(POSIX_SPAWN_SETSIGDEF) | joins | others))

        var pid: pid_t = 0
        var arguments = ([executable] + arguments).map { strdup($0) } + [nil]
        var environment = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { (arguments + environment).forEach { free($0) } }
        let failure = posix_spawn(&pid, executable, &actions, &attributes, &arguments, &environment)
        for case (let number, .pipe(let pipe)) in streams {
            try? pipe.childEnd(number).close()  // closed already if it is used twice
        }
        guard failure == 0 else { throw POSIXError(POSIXErrorCode(rawValue: failure) ?? .EIO) }
        state.withLock { $0 = .running(pid) }
    }

    /// The identifier of the running process; `nil` before the start and after the end.
    fileprivate var identifier: pid_t? {
        guard isRunning, case .running(let pid) = state.withLock(\.self) else { return nil }
        return pid
    }

    #if !canImport(Darwin)
    private typealias CloseFrom = @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32

    /// A function that is available since glibc 2.34. Without it, a child inherits descriptors that
    /// `exec` does not close.
    private static let closeFrom = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np").map {
        unsafeBitCast($0, to: CloseFrom.self)
    }
    #endif

    /// Waits until the process has ended. Blocks the thread.
    ///
    /// - Returns: The exit status, or the negative number of the signal that ended the process.
    @discardableResult
    package func waitUntilExit() -> Int32 {
        if case .running(let pid) = state.withLock(\.self) {
            var info = siginfo_t()
            // WNOWAIT keeps the process identifier reserved.
            while waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT) == -1, errno == EINTR {}
        }
        return reap(0) ?? 0
    }

    package var isRunning: Bool {
        if case .created = state.withLock(\.self) { return false }
        return reap(WNOHANG) == nil
    }

    /// Sends a signal to the process. Has no effect before the process starts or after it ends.
    package func send(_ signal: Int32) {
        state.withLock { state in
            guard case .running(let pid) = state else { return }
            kill(pid, signal)
        }
    }

    /// Returns the result of ``waitUntilExit()``; `nil` if the process has not ended.
    private func reap(_ options: Int32) -> Int32? {
        state.withLock { state in
            switch state {
            case .created: return nil
            case .ended(let result): return result
            case .running(let pid):
                var status: Int32 = 0
                guard waitpid(pid, &status, options) == pid else { return nil }
                let result = status & 0x7F == 0 ? status >> 8 & 0xFF : -(status & 0x7F)
                state = .ended(result)
                return result
            }
        }
    }
}

/// A shell that waits for the end of this process, and then terminates its own process group, to
/// which all children of this process belong.
private final class Guardian: Sendable {
    static let shared = try? Guardian()  // without a shell, children remain

    private let pipe = Pipe()
    private let shell: ChildProcess

    private init() throws {
        let script = "trap '' HUP INT TERM; read -r line; kill 0; sleep 2; kill -KILL 0"
        shell = ChildProcess("/bin/sh", ["-c", script], input: .pipe(pipe), output: .null, errors: .null)
        _ = fcntl(pipe.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC)
        try shell.run(inGroup: 0)
    }

    /// The process group; `nil` if the shell has ended.
    var group: pid_t? { shell.identifier }
}

extension Pipe {
    /// Returns the end that a child process uses as a standard descriptor.
    fileprivate func childEnd(_ number: Int32) -> FileHandle {
        number == 0 ? fileHandleForReading : fileHandleForWriting
    }
}
#endif
