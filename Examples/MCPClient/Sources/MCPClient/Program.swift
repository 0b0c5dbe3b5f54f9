import Dispatch
import Foundation
import WebServiceCore
import WebServiceDiagnostics

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

@main
struct Program {
    static func main() async {
        umask(0o077)  // only the user may read the stored log-in
        do {
            let words = CommandLine.arguments.dropFirst()
            guard Set(words).isDisjoint(with: ["--help", "-h"]) else { return print(Arguments.help) }
            guard !words.contains("--version") else { return print("mcp-client \(Arguments.version)") }
            let program = try Program(Arguments(words), ProcessInfo.processInfo.environment)
            try await cancelledByInterrupt { try await program.run() }
        } catch {
            let failure = Failure(error)
            let hint = failure.status == .usage ? "; 'mcp-client --help' lists the commands" : ""
            Output.complain("mcp-client: \(failure.reason)\(hint)")
            exit(failure.status.rawValue)
        }
    }

    private let arguments: Arguments
    private let service: WebService
    private let logIn: LogIn
    private let client: Client
    /// The changes of the list of tools.
    private let changes: (stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation)

    private init(_ arguments: Arguments, _ environment: [String: String]) throws {
        self.arguments = arguments
        service = try Self.service(for: arguments.url, wait: arguments.wait)
        if arguments.isVerbose { service.observers = [.log(.debug) { Output.complain($0.text) }] }
        let home = FileManager.default.homeDirectoryForCurrentUser.appendingPathComponent(".mcp-client")
        let folder = environment["MCP_CLIENT_FOLDER"].map { URL(fileURLWithPath: $0, isDirectory: true) } ?? home
        logIn = try LogIn(at: arguments.url, over: service, in: folder)
        if let token = environment["MCP_TOKEN"], !token.isEmpty {
            service.interceptors.append(.bearer(token))
        } else if arguments.words[0] != "login", let authentication = try logIn.authentication {
            service.interceptors.append(authentication)
        }
        let changes = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let transport = Transport(service) { method, parameters in
            switch method {
            case "notifications/progress": Output.status(progress: parameters)
            case "notifications/tools/list_changed": changes.continuation.yield()
            case "notifications/message": Output.complain(parameters.description)
            default: break
            }
        }
        client = Client(service, transport, timeout: arguments.timeout)
        self.changes = changes
    }

    /// Returns the service of a server.
    ///
    /// - Parameter wait: How long a connection that is refused is tried again.
    static func service(for url: URL, wait: Duration) throws -> WebService {
        let service = WebService(baseURL: url)
        #if WEBSERVICE_CURL
        service.session = try CurlSession()
        #endif
        // A POST is sent again only if nothing of it was sent.
        service.interceptors = [
            RetryPolicy(
                maximumAttempts: .max, baseDelay: .milliseconds(100), maximumDelay: .seconds(1), budget: wait)
        ]
        return service
    }

    private func run() async throws {
        if arguments.words[0] == "logout" { return try await logIn.end() }
        do {
            try await client.connect()
            try await runCommand()
            await client.close()
        } catch let error as WebServiceError where error.status == 401 && arguments.words[0] == "login" {
            try await logIn.begin(after: error.response, scopes: arguments.scopes) { url in
                Output.complain("Open this URL in a browser:\n\(url.absoluteString)")
            }
        } catch {
            await client.close()
            throw error
        }
    }

    private func runCommand() async throws {
        let words = arguments.words
        switch words[0] {
        case "tools" where words.count == 2:
            for tool in try await client.tools() { Output.print(tool.line) }
        case "tools":
            let tool = try await client.tool(words[2])
            Output.print("\(tool.line)\n\(tool.inputSchema)")
        case "call":
            let tool = try await client.tool(words[2])
            let result = try await client.call(tool, try tool.arguments(words.dropFirst(3)))
            Output.status(progress: nil)
            try Output.print(result: result, asJSON: arguments.printsJSON)
        case "login": Output.complain("mcp-client: the server requires no log-in")
        default:
            try await withThrowingTaskGroup { group in
                group.addTask { try await client.listen { changes.continuation.yield() } }
                group.addTask { try await printChanges() }
                defer { group.cancelAll() }
                try await group.next()
            }
        }
    }

    /// Prints the tools, and then those that are added and removed.
    private func printChanges() async throws {
        var known: Set<Tool> = []
        for await _ in changes.stream {
            let tools = Set(try await client.tools())
            for tool in known.subtracting(tools).sorted(by: { $0.name < $1.name }) { Output.print("- \(tool.line)") }
            for tool in tools.subtracting(known).sorted(by: { $0.name < $1.name }) { Output.print("+ \(tool.line)") }
            known = tools
        }
    }

    /// Runs work in a Swift task that SIGINT cancels.
    private static func cancelledByInterrupt(_ work: @escaping @Sendable () async throws -> Void) async throws {
        signal(SIGINT, SIG_IGN)  // otherwise the signal ends the process
        let interrupt = DispatchSource.makeSignalSource(signal: SIGINT)
        let (registration, continuation) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            for await _ in registration {}  // a signal that arrives earlier would be lost
            try await work()
        }
        interrupt.setEventHandler { task.cancel() }
        interrupt.setRegistrationHandler { continuation.finish() }
        interrupt.resume()
        defer { interrupt.cancel() }
        let result = await task.result
        if task.isCancelled { throw CancellationError() }
        try result.get()
    }
}
