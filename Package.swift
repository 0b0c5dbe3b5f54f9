// swift-tools-version: 6.3
import PackageDescription

// For systems without the headers of libcurl or SQLite. `./scripts/test` sets the variables. Traits
// cannot replace them: a trait can disable a dependency, but not a target of the package itself.
let withoutCurl = Context.environment["WEBSERVICE_WITHOUT_CURL"] == "1"
let withoutSQLite = Context.environment["WEBSERVICE_WITHOUT_SQLITE"] == "1"

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

/// Returns the dependencies that are part of the package on this system.
func dependencies(_ names: [String]) -> [Target.Dependency] {
    names.filter { !(withoutCurl && $0.hasSuffix("Curl") || withoutSQLite && $0.hasSuffix("SQLite")) }
        .map { .byName(name: $0) }
}

/// Adds a module and its tests. All modules except Core import Core.
///
/// - Parameters:
///   - imports: The other modules that the module imports.
///   - tests: The modules that its tests import in addition, apart from `TestSupport`.
///   - hasProduct: Whether programs can import the module.
///   - excluded: The files of the tests that are not compiled.
@MainActor func module(
    _ name: String, imports: [String] = [], tests: [String], hasProduct: Bool = true, resources: [Resource] = [],
    excluding excluded: [String] = []
) {
    let imports = (name == "WebServiceCore" ? [] : ["WebServiceCore"]) + imports
    targets.append(
        .target(name: name, dependencies: dependencies(imports), resources: resources, swiftSettings: settings))
    if hasProduct { products.append(.library(name: name, targets: [name])) }
    test("\(name)Tests", imports: [name] + imports + tests, excluding: excluded)
}

/// Adds tests.
@MainActor func test(_ name: String, imports: [String], excluding excluded: [String] = []) {
    targets.append(
        .testTarget(
            name: name, dependencies: dependencies(imports + ["TestSupport"]), exclude: excluded,
            swiftSettings: optionalSettings))
}

/// Adds a program that tests or a script run.
@MainActor func program(_ name: String, path: String, imports: [String], excluding excluded: [String] = []) {
    targets.append(
        .executableTarget(
            name: name, dependencies: dependencies(["WebServiceCore"] + imports), path: path, exclude: excluded,
            swiftSettings: optionalSettings))
}

// MARK: - Modules

module(
    "WebServiceCore",
    tests: [
        "WebServiceCaching", "WebServiceCallbacks", "WebServiceConformance", "WebServiceDiagnostics",
        "WebServiceMocking", "WebServicePagination", "WebServiceResilience", "WebServiceServer", "WebServiceTransfers",
    ])
module("WebServiceCaching", imports: ["WebServiceFields"], tests: ["WebServiceDiagnostics", "WebServiceMocking"])
module("WebServiceCallbacks", tests: [])
module(
    "WebServiceCassettes",
    imports: ["WebServiceDiagnostics", "WebServiceMocking", "WebServiceServer", "WebSocketCodec"],
    tests: ["WebServiceTransfers"])
module("WebServiceConformance", imports: ["WebServiceMocking", "WebServiceServer"], tests: [])
module(
    "WebServiceCrypto", imports: ["SystemCrypto"],
    tests: ["WebServiceCaching", "WebServiceMocking", "WebServiceSQLite"])
module("WebServiceDiagnostics", tests: ["WebServiceMocking", "WebServiceServer", "WebServiceSockets"])
module("WebServiceFields", imports: ["SystemCrypto"], tests: [])
module(
    "WebServiceInspector", imports: ["WebServiceDiagnostics", "WebServiceServer"],
    tests: [
        "WebServiceCaching", "WebServiceCassettes", "WebServiceMocking", "WebServiceOffline", "WebServiceResilience",
        "WebServiceSockets",
    ],
    resources: [
        "inspector.html", "inspector.css", "bodies.css", "format.js", "markup.js", "bodies.js", "list.js",
        "waterfall.js", "search.js", "import.js", "send.js", "detail.js", "connection.js",
    ].map { .embedInCode("Page/\($0)") })
module(
    "WebServiceMocking", imports: ["WebServiceDiagnostics"],
    tests: ["WebServiceCaching", "WebServiceCallbacks", "WebServiceServer", "WebServiceTransfers"])
module(
    "WebServiceOffline",
    tests: [
        "WebServiceCaching", "WebServiceCurl", "WebServiceMocking", "WebServiceResilience", "WebServiceSQLite",
        "WebServiceServer", "WebServiceSockets", "WebServiceTransfers",
    ])
module("WebServicePagination", tests: ["WebServiceMocking"])
module(
    "WebServiceResilience", imports: ["WebServiceFields"],
    tests: ["WebServiceCurl", "WebServiceDiagnostics", "WebServiceMocking", "WebServiceServer"])
module(
    "WebServiceServer", imports: ["WebServiceMocking", "WebSocketCodec"], tests: [])
module(
    "WebServiceSockets", imports: ["WebSocketCodec"],
    tests: ["WebServiceCassettes", "WebServiceCurl", "WebServiceMocking", "WebServiceServer"])
module(
    "WebServiceTesting", imports: ["WebServiceCassettes", "WebServiceMocking"], tests: ["WebServiceServer"],
    excluding: ["Cassettes"])
module(
    "WebServiceTransfers", imports: ["WebServiceFields", "SystemCrypto"],
    tests: ["WebServiceCurl", "WebServiceMocking", "WebServiceServer"],
    excluding: ["Uploads/Support/tus-server.py"])
// For the modules that open or accept WebSocket connections.
module("WebSocketCodec", tests: [], hasProduct: false)
// For the modules that encrypt data or compute hashes of files; tested by `WebServiceCryptoTests`.
targets.append(.target(name: "SystemCrypto", dependencies: ["WebServiceCore"], swiftSettings: settings))
if !withoutCurl {
    targets.append(
        .systemLibrary(
            name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]))
    module(
        "WebServiceCurl", imports: ["CCurl"],
        tests: [
            "WebServiceConformance", "WebServiceDiagnostics", "WebServiceMocking", "WebServiceServer",
            "WebServiceTransfers",
        ],
        excluding: ["Support/http3-server.py"])
}
if !withoutSQLite {
    targets.append(
        .systemLibrary(
            name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]))
    module(
        "WebServiceSQLite", imports: ["WebServiceOffline", "CSQLite"], tests: ["WebServiceMocking", "WebServiceServer"])
}

// MARK: - Tests of several modules, and programs

targets.append(
    .target(
        name: "TestSupport", dependencies: ["WebServiceCore", "WebServiceMocking", "WebServiceServer"],
        path: "Tests/TestSupport",
        exclude: ["Disk/disk-log.c"], swiftSettings: settings))
test("GuideTests", imports: products.map(\.name), excluding: ["Cassettes"])
test(
    "EndToEndTests",
    imports: [
        "WebServiceCore", "WebServiceCaching", "WebServiceCassettes", "WebServiceConformance", "WebServiceCurl",
        "WebServiceDiagnostics", "WebServiceFields", "WebServiceMocking", "WebServicePagination",
        "WebServiceResilience", "WebServiceSQLite", "WebServiceServer", "WebServiceTransfers",
    ])
program(
    "Brewery", path: "Examples/Brewery",
    imports: [
        "WebServiceCallbacks", "WebServiceCurl", "WebServiceDiagnostics", "WebServiceInspector", "WebServiceMocking",
        "WebServicePagination", "WebServiceSQLite", "WebServiceServer", "WebServiceTransfers",
    ],
    excluding: ["README.md"])
products.append(.executable(name: "brewery", targets: ["Brewery"]))
program(
    "session-probe", path: "Tests/SessionProbe",
    imports: [
        "WebServiceConformance", "WebServiceCurl", "WebServiceMocking", "WebServiceServer", "WebServiceTransfers",
    ])
program("storage-probe", path: "Tests/StorageProbe", imports: ["WebServiceSQLite"])
program(
    "outbox-probe", path: "Tests/OutboxProbe", imports: ["WebServiceCurl", "WebServiceOffline", "WebServiceSQLite"])
program(
    "inspector-probe", path: "Tests/InspectorProbe",
    imports: [
        "WebServiceCaching", "WebServiceInspector", "WebServiceMocking", "WebServiceServer", "WebServiceSockets",
    ])
if !withoutCurl {
    program("socket-probe", path: "Tests/SocketProbe", imports: ["WebServiceCurl", "WebServiceSockets"])
    program("call-probe", path: "Tests/CallProbe", imports: ["WebServiceCurl"], excluding: ["Budgets.md"])
}
// It uses internal symbols: release builds need `-Xswiftc -enable-testing` (`./scripts/soak`).
if Context.environment["WEBSERVICE_FUZZ"] == "1" {
    program(
        "fuzz", path: "Tests/Fuzz",
        imports: [
            "WebServiceCaching", "WebServiceCurl", "WebServiceDiagnostics", "WebServiceFields", "WebServiceMocking",
            "WebServicePagination", "WebServiceServer", "WebSocketCodec",
        ])
}

let package = Package(
    name: "WebService", platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: products, targets: targets)
