// swift-tools-version: 6.3
import PackageDescription

// For systems without the headers of libcurl or SQLite. `./scripts/test` sets the variables. Traits
// cannot replace them: a trait can disable a dependency, but not a target of the package itself.
let withoutCurl = Context.environment["WEBSERVICE_WITHOUT_CURL"] == "1"
let withoutSQLite = Context.environment["WEBSERVICE_WITHOUT_SQLITE"] == "1"

/// The names of the only tests to build, separated by commas, for `./scripts/test MODULE`; `nil` for all.
let onlyTests = Context.environment["WEBSERVICE_ONLY_TESTS"]?.split(separator: ",")

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),  // swift-evolution SE-0335
    .enableUpcomingFeature("InternalImportsByDefault"),  // swift-evolution SE-0409
    .enableUpcomingFeature("MemberImportVisibility"),  // swift-evolution SE-0444
]
/// The settings of targets whose dependencies on Curl and SQLite are optional.
let optionalSettings: [SwiftSetting] =
    settings + (withoutCurl ? [] : [.define("WEBSERVICE_CURL")])
    + (withoutSQLite ? [] : [.define("WEBSERVICE_SQLITE")])

var products: [Product] = []
var targets: [Target] = []
let core: [Target.Dependency] = ["WebServiceCore"]

/// Returns the dependencies that are part of the package on this system. Their names are separated
/// by spaces and, apart from these, without the prefix `WebService`.
func dependencies(_ names: String) -> [Target.Dependency] {
    let complete = ["CCurl", "CSQLite", "LoopbackSocket", "SystemCrypto", "TestSupport", "WebSocketCodec"]
    return names.split(separator: " ").map(String.init)
        .filter { !(withoutCurl && $0.hasSuffix("Curl") || withoutSQLite && $0.hasSuffix("SQLite")) }
        .map { .byName(name: complete.contains($0) ? $0 : "WebService\($0)") }
}

/// Adds a module and its tests. All modules except Core import Core.
///
/// - Parameters:
///   - imports: The other modules that the module imports.
///   - tests: The modules that its tests import in addition; see `test`.
///   - hasProduct: Whether programs can import the module.
///   - excluded: The files of the tests that are not compiled.
@MainActor func module(
    _ name: String, imports: String = "", tests: String = "", hasProduct: Bool = true, resources: [Resource] = [],
    excluding excluded: [String] = []
) {
    let imports = name == "WebServiceCore" ? imports : "Core \(imports)"
    targets.append(
        .target(name: name, dependencies: dependencies(imports), resources: resources, swiftSettings: settings))
    if hasProduct { products.append(.library(name: name, targets: [name])) }
    let own = name.hasPrefix("WebService") ? String(name.dropFirst("WebService".count)) : name
    test("\(name)Tests", imports: "\(own) \(imports) \(tests)", excluding: excluded)
}

/// Adds tests. All tests can import Core, the mocks, the mock server and `TestSupport`.
@MainActor func test(_ name: String, imports: String, excluding excluded: [String] = []) {
    guard onlyTests?.contains(Substring(name)) ?? true else { return }
    let names = Set("\(imports) Core Mocking Server TestSupport".split(separator: " ")).sorted()
    targets.append(
        .testTarget(
            name: name, dependencies: dependencies(names.joined(separator: " ")), exclude: excluded,
            swiftSettings: optionalSettings))
}

/// Adds a program that tests or a script run.
@MainActor func program(_ name: String, path: String, imports: String, excluding excluded: [String] = []) {
    targets.append(
        .executableTarget(
            name: name, dependencies: dependencies("Core \(imports)"), path: path, exclude: excluded,
            swiftSettings: optionalSettings))
}

// MARK: - Modules

module(
    "WebServiceCore",
    tests: "Caching Conformance Diagnostics Endpoints Pagination Resilience Storage Transfers")
module("WebServiceCaching", imports: "Fields Storage", tests: "Diagnostics")
module(
    "WebServiceCassettes", imports: "Diagnostics Endpoints Mocking Server WebSocketCodec", tests: "Transfers")
module("WebServiceConformance", imports: "Mocking Server")
module("WebServiceCrypto", imports: "Storage SystemCrypto", tests: "Caching SQLite")
module("WebServiceDiagnostics", tests: "Sockets")
module("WebServiceEndpoints", imports: "Storage", tests: "Caching")
module(
    "WebServiceFaults", imports: "Mocking",
    tests: "Caching Endpoints Offline Pagination Resilience Sockets Storage Transfers")
module("WebServiceFields", imports: "SystemCrypto")
module(
    "WebServiceInspector", imports: "Diagnostics Server",
    tests: "Caching Cassettes Offline Resilience Sockets",
    resources: [
        "inspector.html", "inspector.css", "details.css", "bodies.css", "format.js", "markup.js", "bodies.js",
        "keep.js", "row.js", "list.js", "filter.js", "help.js", "waterfall.js", "search.js", "import.js",
        "export.js", "send.js", "code.js", "timeline.js", "overview.js", "detail.js", "keyboard.js", "connection.js",
    ].map { .embedInCode("Page/\($0)") })
module("WebServiceMocking", imports: "Diagnostics Endpoints Storage", tests: "Caching Transfers")
module(
    "WebServiceOffline", imports: "Endpoints Storage",
    tests: "Caching Curl Resilience SQLite Sockets Transfers")
module(
    "WebServiceOAuth", imports: "LoopbackSocket Storage SystemCrypto", tests: "Cassettes Diagnostics Resilience",
    excluding: ["Hostile", "Peers"])
module("WebServicePagination", imports: "Endpoints")
module("WebServiceResilience", imports: "Fields", tests: "Curl Diagnostics")
module("WebServiceServer", imports: "LoopbackSocket Mocking WebSocketCodec")
module("WebServiceSockets", imports: "WebSocketCodec", tests: "Cassettes Curl")
module("WebServiceStorage")
module("WebServiceTesting", imports: "Cassettes Faults Mocking", excluding: ["Cassettes"])
module(
    "WebServiceTransfers", imports: "Fields SystemCrypto", tests: "Curl",
    excluding: ["Uploads/Support/tus-server.py"])
// For the modules that open or accept WebSocket connections.
module("WebSocketCodec", hasProduct: false)
// For the modules that accept connections on 127.0.0.1, and for those that encrypt data or compute hashes.
targets += ["LoopbackSocket", "SystemCrypto"].map { .target(name: $0, dependencies: core, swiftSettings: settings) }
if !withoutCurl {
    targets.append(
        .systemLibrary(
            name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]))
    module(
        "WebServiceCurl", imports: "CCurl", tests: "Conformance Diagnostics Transfers",
        excluding: ["Support/http3-server.py"])
}
if !withoutSQLite {
    targets.append(
        .systemLibrary(
            name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]))
    module("WebServiceSQLite", imports: "CSQLite Offline Storage")
}

// MARK: - Tests of several modules, and programs

targets.append(
    .target(
        name: "TestSupport", dependencies: dependencies("Core Endpoints Mocking Server Storage"),
        path: "Tests/TestSupport", exclude: ["Disk/disk-log.c"], swiftSettings: settings))
let everything = products.map { $0.name.dropFirst("WebService".count) }.joined(separator: " ")
test("GuideTests", imports: everything, excluding: ["Cassettes"])
test(
    "EndToEndTests",
    imports: "Caching Cassettes Conformance Curl Diagnostics Endpoints Fields Pagination Resilience SQLite Storage "
        + "Transfers")
program(
    "Brewery", path: "Examples/Brewery",
    imports: "Curl Diagnostics Endpoints Faults Inspector Mocking Pagination SQLite Server Storage Transfers",
    excluding: ["README.md"])
products.append(.executable(name: "brewery", targets: ["Brewery"]))
program(
    "session-probe", path: "Tests/SessionProbe",
    imports: "Caching Conformance Curl Mocking Server Storage Transfers")
program("storage-probe", path: "Tests/StorageProbe", imports: "SQLite Storage")
program("outbox-probe", path: "Tests/OutboxProbe", imports: "Curl Offline SQLite")
program(
    "inspector-probe", path: "Tests/InspectorProbe",
    imports: "Caching Curl Endpoints Inspector Mocking Resilience Server Sockets Storage Transfers")
if !withoutCurl {
    program("socket-probe", path: "Tests/SocketProbe", imports: "Curl Sockets")
    program("call-probe", path: "Tests/CallProbe", imports: "Curl Endpoints", excluding: ["Budgets.md"])
}
// It uses internal symbols: release builds need `-Xswiftc -enable-testing` (`./scripts/soak`).
if Context.environment["WEBSERVICE_FUZZ"] == "1" {
    program(
        "fuzz", path: "Tests/Fuzz",
        imports: "Caching Curl Diagnostics Endpoints Fields Mocking Pagination Storage WebSocketCodec Server")
}

let package = Package(
    name: "WebService", platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: products, targets: targets)
