import Dispatch
import Foundation
import WebServiceCore
import WebServiceTransfers

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// `brewery fetch`: downloads a file, and continues a download that was interrupted.
struct Fetch {
    static let help = """
        usage: brewery fetch URL [--to FILE] [--connections N] [--sha256 HASH]
                             [--transport foundation|curl]

        Downloads a file. The bytes are written to a hidden file beside it. After an
        interruption of any kind, the same command continues the download.

          --to FILE         the path of the file; defaults to the name that the server
                            suggests, in the current folder
          --connections N   the number of concurrent requests for parts of a large
                            file, 1 to 16; defaults to 1
          --sha256 HASH     the expected hash, 64 hexadecimal digits
          --transport NAME  foundation or curl; defaults to curl where it is available

        'brewery --help' lists the exit statuses.
        """

    private var url = ""
    private var file: String?
    private var connections = 1
    private var checksum: Checksum?
    private var transport = Options.Transport.ofStreams

    /// Parses the arguments after `fetch`.
    init(_ arguments: [String]) throws(Options.Problem) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--to": file = try Options.value(of: argument, from: &rest)
            case "--connections":
                let value = try Options.value(of: argument, from: &rest)
                guard let number = Int(value), (1...16).contains(number) else {
                    throw Options.Problem(
                        message: "--connections needs a number from 1 to 16, not \(Options.quoted(value))")
                }
                connections = number
            case "--sha256": checksum = .sha256(try Options.value(of: argument, from: &rest))
            case "--transport": transport = try Options.transport(of: argument, from: &rest)
            case _ where argument.hasPrefix("-") || !url.isEmpty:
                throw Options.unknown(
                    argument, amongst: ["--to", "--connections", "--sha256", "--transport", "--help"])
            default: url = argument
            }
        }
        guard !url.isEmpty else { throw Options.Problem(message: "fetch needs a URL") }
    }

    /// Runs the download.
    ///
    /// - Returns: The exit status.
    func run() async -> ExitStatus {
        let service = WebService(baseURLString: url)
        service.session = setUp("the transport \(transport)") { try session(transport) }
        service.interceptors = [.retry(maximumAttempts: 5)]
        let folder = URL(fileURLWithPath: FileManager.default.currentDirectoryPath, isDirectory: true)
        let (interrupts, continuation) = AsyncStream.makeStream(of: Void.self)
        signal(SIGINT, SIG_IGN)  // otherwise the signal ends the process
        let interrupt = DispatchSource.makeSignalSource(signal: SIGINT)
        interrupt.setEventHandler { continuation.yield() }
        await withCheckedContinuation { registration in
            interrupt.setRegistrationHandler { registration.resume() }
            interrupt.resume()
        }
        let request = service.GET(url)
        let task =
            file.map {
                request.download(to: URL(fileURLWithPath: $0), checksum: checksum, connections: connections)
            } ?? request.download(into: folder, checksum: checksum, connections: connections)
        let display = ProgressDisplay()
        let cancellation = Task { for await _ in interrupts { task.cancel() } }
        let shown = Task { [progress = task.progress] in
            for await progress in progress { display.show(progress) }
        }
        let result = await task.result
        await shown.value
        interrupt.cancel()
        cancellation.cancel()
        display.end()
        switch result {
        case .success(let file):
            let resumed = file.resumedFrom > 0 ? ", continued after \(ProgressDisplay.size(file.resumedFrom))" : ""
            output("\(file.url.lastPathComponent): \(ProgressDisplay.size(file.byteCount))\(resumed)")
            return .success
        case .failure(let error as URLError) where error.code == .cancelled:
            complain("interrupted; the same command continues the download")
            return .interrupted
        case .failure(let error as URLError):
            complain("\(error.localizedDescription); the same command continues the download")
            return error.isConnectionFailure ? .unavailable : .failure
        case .failure(let error):
            complain(error.localizedDescription)
            return .failure
        }
    }
}
