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
        complain("brewery: CurlSession is not available, because the program was built without libcurl")
        exit(wrongUsage)
        #endif
    }
}

/// Exits with the status 69 if a part of the demo cannot be created.
func setUp<Value>(_ part: String, _ step: () throws -> Value) -> Value {
    do { return try step() } catch {
        complain("brewery: \(part) cannot be used: \(error)")
        exit(unavailable)
    }
}

let arguments = Array(CommandLine.arguments.dropFirst())
if arguments.first == "fetch" {
    if arguments.contains("--help") {
        output(Fetch.help)
        exit(0)
    }
    do { exit(await (try Fetch(Array(arguments.dropFirst()))).run()) } catch {
        complain(
            "brewery: \(error.message)\nusage: brewery fetch URL [OPTION]...; 'brewery fetch --help' lists the options")
        exit(wrongUsage)
    }
}

if arguments.first == "chat" {
    if arguments.contains("--help") {
        output(Chat.help)
        exit(0)
    }
    do { exit(await (try Chat(Array(arguments.dropFirst()))).run()) } catch {
        complain("brewery: \(error.message)\nusage: brewery chat [OPTION]...; 'brewery chat --help' lists the options")
        exit(wrongUsage)
    }
}

let options: Options
do { options = try Options(arguments) } catch {
    complain("brewery: \(error.message)\n\(Options.usage)")
    exit(wrongUsage)
}

if options.wantsHelp {
    output(Options.help)
    exit(0)
}

do {
    let server = options.server == nil ? setUp("the server of the demo", BreweryServer.start) : nil
    let address = options.server ?? server?.baseURLString ?? ""

    if options.servesOnly {
        output(address)
        while readLine() != nil {}
        exit(0)
    }

    let service = WebService(baseURLString: address)
    let log = OpenExchanges()
    if options.isVerbose { service.observers = [.log(.trace) { output($0.text) }, log] }
    service.session = setUp("the transport \(options.transport)") { try session(options.transport) }
    service.storages = [
        options.store.map { path in setUp("the store \(path)") { try FileStorage(folder: URL(fileURLWithPath: path)) } }
            ?? MemoryStorage()
    ]
    service.storageErrorObserver = {
        complain("brewery: the store \(options.store ?? "in memory") failed: \($0.error)")
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
            complain("brewery: \(count(failures, "exchange")) failed; check that \(address) is a brewery server")
            exit(1)
        }
        output("\nDone.")
        if inspector != nil {
            output("The inspector is available until standard input ends.")
            while readLine() != nil {}
        }
    } catch let error as Demo.Unreachable {
        complain("brewery: the server at \(address) cannot be reached: \(error.reason)")
        guard let store = options.store else { exit(unavailable) }
        do {
            let stored = try await service.stored(BrewersRequest()).value
            let age = stored.age.map { "stored \($0.components.seconds) s ago" } ?? "of unknown age"
            output("\nOffline. The list of brewers, \(age):")
            for brewer in stored.value { output("    \(brewer)") }
        } catch {
            complain("brewery: no list of brewers is stored in \(store): \(error)")
            exit(unavailable)
        }
    }
    inspector?.stop()
    server?.stop()
} catch {
    complain("brewery: the demo failed: \(error)")
    exit(unavailable)
}
