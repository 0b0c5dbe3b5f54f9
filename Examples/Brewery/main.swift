// A demo of the framework. See `brewery --help`.

import Foundation
import WebServiceCore
import WebServiceDiagnostics
import WebServiceEndpoints
import WebServiceInspector
import WebServiceMocking
import WebServiceServer
import WebServiceStorage

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

func session(_ transport: Options.Transport) throws -> any Session {
    switch transport {
    case .foundation: return FoundationSession.shared
    case .curl:
        #if WEBSERVICE_CURL
        return try CurlSession()
        #else
        complain("CurlSession is not available, because the program was built without libcurl")
        exit(.usage)
        #endif
    }
}

/// Exits with ``ExitStatus/unavailable`` if a part of the demo cannot be created.
func setUp<Value>(_ part: String, _ step: () throws -> Value) -> Value {
    do { return try step() } catch {
        complain("\(part) cannot be used. \(error.localizedDescription)")
        exit(.unavailable)
    }
}

/// Exits after a problem with the arguments.
func reject(_ problem: Options.Problem, _ command: String) -> Never {
    complain(problem.message)
    note("'\(command) --help' lists the options.")
    exit(.usage)
}

let arguments = Array(CommandLine.arguments.dropFirst())
if arguments.contains("--help") || arguments.contains("-h") {
    output(arguments.first == "fetch" ? Fetch.help : arguments.first == "chat" ? Chat.help : Options.help)
    exit(.success)
}
if arguments.contains("--version") {
    output("brewery \(Options.version)")
    exit(.success)
}
switch arguments.first {
case "fetch":
    do { exit(await (try Fetch(Array(arguments.dropFirst()))).run()) } catch { reject(error, "brewery fetch") }
case "chat":
    do { exit(await (try Chat(Array(arguments.dropFirst()))).run()) } catch { reject(error, "brewery chat") }
default: break
}

let options: Options
do { options = try Options(arguments) } catch { reject(error, "brewery") }
if options.explores { exit(await Explore.run() ? .success : .failure) }

do {
    let server = options.server == nil ? setUp("the server of the demo", BreweryServer.start) : nil
    let address = options.server ?? server?.baseURLString ?? ""

    if options.servesOnly {
        output(address)
        while readLine() != nil {}
        exit(.success)
    }

    let service = WebService(baseURLString: address)
    let log = OpenExchanges()
    if options.isVerbose { service.observers = [.log(.trace) { note($0.text) }, log] }
    service.session = setUp("the transport \(options.transport)") { try session(options.transport) }
    service.storages = [
        options.store.map { path in setUp("the store \(path)") { try FileStorage(folder: URL(fileURLWithPath: path)) } }
            ?? MemoryStorage()
    ]
    service.storageErrorObserver = {
        complain("the store \(options.store ?? "in memory") failed: \($0.error)")
    }
    let inspector = options.inspects ? setUp("the inspector") { try Inspector(observing: service) } : nil
    // Not wrapped, so that a terminal recognizes the whole URL.
    if let inspector { output(piece: "The inspector is at \(inspector.url.absoluteString)\n") }
    output(
        "The server is at \(address)\(server == nil ? "" : ", started for this run").\n"
            + "Transport: \(type(of: service.session))."
    )
    do {
        let failures = try await Demo(client: BreweryClient(webService: service)).run()
        await service.finishStoring()
        await log.finish()
        guard failures == 0 else {
            complain("\(count(failures, "exchange")) failed; check that \(address) is a brewery server")
            exit(.failure)
        }
        output("\nDone.")
        if inspector != nil {
            output("The inspector is available until standard input ends.")
            while readLine() != nil {}
        }
    } catch let error as Demo.Unreachable {
        complain("the server at \(address) cannot be reached: \(error.reason)")
        guard let store = options.store else { exit(.unavailable) }
        do {
            let stored = try await service.stored(BrewersRequest()).value
            let age = stored.age.map { "stored \($0.components.seconds) s ago" } ?? "of unknown age"
            output("\nOffline. The list of brewers, \(age):")
            for brewer in stored.value { output("    \(brewer)") }
        } catch {
            complain("no list of brewers is stored in \(store). \(error.localizedDescription)")
            exit(.unavailable)
        }
    }
    inspector?.stop()
    server?.stop()
} catch {
    complain("the demo failed. \(error.localizedDescription)")
    exit(.unavailable)
}
