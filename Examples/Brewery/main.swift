// brewery: a walk through the framework. See `brewery --help`.

import Foundation
import WebServiceCore
import WebServiceMocking

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

/// `EX_USAGE` and `EX_UNAVAILABLE` of sysexits.h.
let wrongUsage: Int32 = 64
let unavailable: Int32 = 69

func session(_ transport: Options.Transport) throws -> any Session {
    switch transport {
    case .foundation: return FoundationSession.shared
    case .curl:
        #if WEBSERVICE_CURL
        return try CurlSession()
        #else
        complain("brewery: this program was built without libcurl, so there is no CurlSession")
        exit(wrongUsage)
        #endif
    }
}

func complain(_ text: String) {
    try? FileHandle.standardError.write(contentsOf: Data("\(text)\n".utf8))  // there is nobody else to tell
}

guard let options = Options(Array(CommandLine.arguments.dropFirst())) else {
    complain(Options.usage)
    exit(wrongUsage)
}

if options.wantsHelp {
    print(Options.help)
    exit(0)
}

do {
    let server = options.server == nil ? try BreweryServer.start() : nil
    let address = options.server ?? server?.baseURLString ?? ""

    if options.servesOnly {
        try FileHandle.standardOutput.write(contentsOf: Data("\(address)\n".utf8))
        while readLine() != nil {}
        exit(0)
    }

    let logger = RequestLogger()
    let service = WebService(baseURLString: address, passthroughDelegate: options.isVerbose ? logger : nil)
    service.session = try session(options.transport)
    service.storages = [try options.store.map { try FileStorage(folder: URL(fileURLWithPath: $0)) } ?? MemoryStorage()]
    service.storageErrorObserver = { complain("brewery: the store failed: \($0.error)") }
    print("The brewery is at \(address)\(server == nil ? "" : ", started for this run"). Transport: \(type(of: service.session)).")
    do {
        let failures = try await Demo(client: BreweryClient(webService: service)).run()
        await service.finishStoring()
        guard failures == 0 else {
            complain("brewery: \(failures) exchanges failed; is that a brewery at \(address)?")
            exit(1)
        }
        print("\nDone.")
    } catch let error as Demo.Unreachable {
        complain("brewery: the server at \(address) cannot be reached: \(error.reason)")
        guard options.store != nil else { exit(unavailable) }
        do {
            let stored = try await service.stored(BrewersRequest()).value
            print("\nOffline. The list of brewers, \(stored.age.map { "stored \(Int($0)) s ago" } ?? "of unknown age"):")
            for brewer in stored.value { print("    \(brewer)") }
        } catch {
            complain("brewery: and nothing is stored: \(error)")
            exit(unavailable)
        }
    }
    withExtendedLifetime(logger) { server?.stop() }
} catch {
    complain("brewery: the server could not be started: \(error)")
    exit(unavailable)
}
