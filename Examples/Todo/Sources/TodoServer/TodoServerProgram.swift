import Dispatch
import Foundation

@main
struct TodoServerProgram {
    static func main() {
        var arguments = Array(CommandLine.arguments.dropFirst())
        guard !arguments.contains("--help") else { return print(help) }
        guard arguments.count >= 2, let port = Int(arguments.removeFirst()) else { usage() }
        var file: URL?
        if arguments.first == "--file", arguments.count >= 3 {
            file = URL(fileURLWithPath: arguments[1])
            arguments.removeFirst(2)
        }
        var passwords: [String: String] = [:]
        for argument in arguments {
            let parts = argument.split(separator: ":", maxSplits: 1).map(String.init)
            guard parts.count == 2 else { usage() }
            passwords[parts[0]] = parts[1]
        }
        do {
            let server = try TodoServer(passwords: passwords, port: port, file: file)
            // print(_:) would delay the line if the output is not a terminal.
            FileHandle.standardOutput.write(Data("listening on \(server.address)\n".utf8))
            withExtendedLifetime(server) { dispatchMain() }
        } catch {
            FileHandle.standardError.write(Data("todo-server: \(error)\n".utf8))
            exit(1)
        }
    }

    private static let help = "usage: todo-server PORT [--file FILE] NAME:PASSWORD ..."

    private static func usage() -> Never {
        FileHandle.standardError.write(Data("\(help)\n".utf8))
        exit(64)
    }
}
