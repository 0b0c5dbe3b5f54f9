import Foundation
import WebServiceOffline

@main
struct TodoProgram {
    static func main() async {
        do {
            let environment = ProcessInfo.processInfo.environment
            let words = Set(CommandLine.arguments.dropFirst())
            guard words.isDisjoint(with: ["--help", "-h"]) else { return print(help) }
            guard !words.contains("--version") else { return print("todo \(version)") }
            try await TodoProgram(arguments: CommandLine.arguments.dropFirst(), environment: environment).run()
        } catch {
            let failure = Failure(error)
            FileHandle.standardError.write(Data("todo: \(failure.reason)\n".utf8))
            exit(failure.status.rawValue)
        }
    }

    static let help = """
        usage: todo login NAME --server URL   (the password is read from TODO_PASSWORD)
               todo add TEXT | done ID | remove ID | list | sync [--user NAME]
               todo logout [--discard] [--user NAME]

        Changes are stored on this machine and sent by 'todo sync', also after an
        interruption of any kind.

        The exit status is 0 for success, 1 for a failure, 64 for wrong arguments, 69
        if the server cannot be reached, and 77 if the log-in is missing or rejected.
        """
    private static let version = "0.1.0"
    private static let commands = ["login", "add", "done", "remove", "list", "sync", "logout"]

    private var words: [String] = []
    private var options: [String: String] = [:]
    private let password: String?
    /// The folder that contains a folder for each user.
    private let accounts: URL
    private let lock: FolderLock

    private init(arguments: some Sequence<String>, environment: [String: String]) throws {
        var iterator = arguments.makeIterator()
        while let argument = iterator.next() {
            switch argument {
            case "--server", "--user":
                guard let value = iterator.next() else { throw Failure.usage("\(argument) needs a value") }
                options[argument] = value
            case "--discard": options[argument] = ""
            default: words.append(argument)
            }
        }
        password = environment["TODO_PASSWORD"]
        let home = FileManager.default.homeDirectoryForCurrentUser.appendingPathComponent(".todo")
        let folder = environment["TODO_FOLDER"].map { URL(fileURLWithPath: $0, isDirectory: true) } ?? home
        accounts = folder.appendingPathComponent("accounts", isDirectory: true)
        try FileManager.default.createDirectory(
            at: accounts, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        lock = try FolderLock(folder)
    }

    private func run() async throws {
        defer { withExtendedLifetime(lock) {} }
        try Account.finishLogOuts(in: accounts)  // of a process that was killed
        guard let command = words.first else { throw Failure.usage("a command is missing") }
        let value = words.dropFirst().joined(separator: " ")
        switch (command, value.isEmpty) {
        case ("login", false): try await logIn(value)
        case ("add", false), ("done", false), ("remove", false), ("list", true), ("sync", true), ("logout", true):
            let todos = try TodoAccount(in: accounts.appendingPathComponent(user)) { status in
                Self.print("The server has rejected a change with status \(status).")
            }
            try await run(command, value, todos)
            await todos.outbox.close()
        case _ where Self.commands.contains(command):
            throw Failure.usage(
                value.isEmpty ? "\(command) needs an argument" : "\(command) has no argument '\(value)'")
        default: throw Failure.usage("unknown command '\(command)'\(Self.hint(for: command))")
        }
    }

    /// Returns the command that begins with the same letters as an unknown one.
    private static func hint(for command: String) -> String {
        let similar = commands.max { $0.commonPrefix(with: command).count < $1.commonPrefix(with: command).count }
        guard let similar, similar.commonPrefix(with: command).count >= 2 else { return "" }
        return "; did you mean '\(similar)'?"
    }

    private func run(_ command: String, _ value: String, _ todos: TodoAccount) async throws {
        switch command {
        case "add":
            let todo = Todo(text: value)
            try await todos.submit(.put(todo))
            Self.print("added \(todo.id)")
        case "done":
            var todo = try await find(value, in: todos)
            todo.isDone = true
            try await todos.submit(.put(todo))
            Self.print("done \(todo.id)")
        case "remove":
            let todo = try await find(value, in: todos)
            try await todos.submit(.remove(id: todo.id))
            Self.print("removed \(todo.id)")
        case "sync":
            try await todos.synchronize()
            Self.print("All changes are sent.")
        case "logout":
            let count = await todos.outbox.entries.count
            guard count == 0 || options["--discard"] != nil else {
                throw Failure(
                    .failure,
                    "\(count == 1 ? "1 change is" : "\(count) changes are") not sent; "
                        + "run 'todo sync', or 'todo logout --discard'")
            }
            try await todos.logOut()
            Self.print("logged out")
        default:
            let (all, pending) = try await todos.todos
            if all.isEmpty { FileHandle.standardError.write(Data("todo: there are no to-dos\n".utf8)) }
            for todo in all {
                let mark = pending.contains(todo.id) ? "  (not sent)" : ""
                Self.print("\(todo.id)  [\(todo.isDone ? "x" : " ")] \(todo.text)\(mark)")
            }
        }
    }

    private func logIn(_ name: String) async throws {
        // The name is that of a folder.
        guard name.utf8.count <= 64, name.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) }) else {
            throw Failure(.usage, "a user name consists of at most 64 letters and digits")
        }
        guard let server = options["--server"] else { throw Failure.usage("login needs --server URL") }
        // The arguments of a process are visible to others, so the password is not one of them.
        guard let password else { throw Failure(.usage, "set the variable TODO_PASSWORD to your password") }
        try await TodoAccount.logIn(
            name, password: password, server: server, folder: accounts.appendingPathComponent(name))
        Self.print("logged in as \(name)")
    }

    /// The user of the command. With a single account, no option is necessary.
    private var user: String {
        get throws {
            let users = try FileManager.default.contentsOfDirectory(atPath: accounts.path).sorted()
            let named = options["--user"]
            guard !users.isEmpty, named.map(users.contains) ?? true else {
                throw Failure(.noPermission, "log in with 'todo login NAME --server URL'")
            }
            guard named != nil || users.count == 1 else {
                throw Failure(.usage, "select a user with --user: \(users.joined(separator: ", "))")
            }
            return named ?? users[0]
        }
    }

    /// Returns the to-do whose identifier begins with a string.
    private func find(_ start: String, in todos: TodoAccount) async throws -> Todo {
        let found = try await todos.todos.all.filter { $0.id.hasPrefix(start) }
        guard let todo = found.first, found.count == 1 else {
            throw Failure(.failure, "\(found.count) to-dos have an identifier that begins with '\(start)'")
        }
        return todo
    }

    /// Prints a line without control characters, which a to-do of the server may contain.
    private static func print(_ line: String) {
        let scalars = line.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 }
        FileHandle.standardOutput.write(Data((String(String.UnicodeScalarView(scalars)) + "\n").utf8))
    }
}

/// A lock that lets one command run at a time. The system releases it when the process ends.
final class FolderLock: Sendable {
    private let file: FileHandle

    init(_ folder: URL) throws {
        let path = folder.appendingPathComponent("lock").path
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0, flock(descriptor, LOCK_EX) == 0 else {
            throw Failure(.failure, "\(path) cannot be locked: \(String(cString: strerror(errno)))")
        }
        file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }
}
