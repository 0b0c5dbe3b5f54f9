// swift-tools-version: 6.1
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),  // swift-evolution SE-0335
    .enableUpcomingFeature("InternalImportsByDefault"),  // swift-evolution SE-0409
    .enableUpcomingFeature("MemberImportVisibility"),  // swift-evolution SE-0444
]

/// Whoever has no libcurl headers sets this, and gets a package without `WebServiceCurl`; `./scripts/test` does so by itself.
let withoutCurl = Context.environment["WEBSERVICE_WITHOUT_CURL"] == "1"

let curlTargets: [Target] =
    withoutCurl
    ? []
    : [
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
        .target(name: "WebServiceCurl", dependencies: ["WebServiceCore", "CCurl"], swiftSettings: settings),
        .testTarget(
            name: "WebServiceCurlTests", dependencies: ["WebServiceCore", "WebServiceCurl", "WebServiceMocking", "CCurl"],
            swiftSettings: settings
        ),
    ]
let curlProducts: [Product] = withoutCurl ? [] : [.library(name: "WebServiceCurl", targets: ["WebServiceCurl"])]
/// What the demo and the tests of the documentation need to use `WebServiceCurl` where it is there.
let curlDependency: [Target.Dependency] = withoutCurl ? [] : ["WebServiceCurl"]

/// The same for SQLite and `WebServiceSQLite`.
let withoutSQLite = Context.environment["WEBSERVICE_WITHOUT_SQLITE"] == "1"

let sqliteTargets: [Target] =
    withoutSQLite
    ? []
    : [
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
        .target(name: "WebServiceSQLite", dependencies: ["WebServiceCore", "CSQLite"], swiftSettings: settings),
        .testTarget(
            name: "WebServiceSQLiteTests", dependencies: ["WebServiceCore", "WebServiceSQLite", "CSQLite"],
            swiftSettings: settings
        ),
    ]
let sqliteProducts: [Product] = withoutSQLite ? [] : [.library(name: "WebServiceSQLite", targets: ["WebServiceSQLite"])]
let sqliteDependency: [Target.Dependency] = withoutSQLite ? [] : ["WebServiceSQLite"]

/// For targets that use one of the two, or both, where they are there.
let optionalSettings: [SwiftSetting] =
    settings + (withoutCurl ? [] : [.define("WEBSERVICE_CURL")]) + (withoutSQLite ? [] : [.define("WEBSERVICE_SQLITE")])

/// `fuzz` sees what is internal, so a release build of it needs `-Xswiftc -enable-testing`; the scripts that run it set this.
let fuzzTargets: [Target] =
    Context.environment["WEBSERVICE_FUZZ"] != "1"
    ? []
    : [
        .executableTarget(
            name: "fuzz",
            dependencies: ["WebServiceCore", "WebServiceMocking"] + curlDependency,
            path: "Tests/Fuzz",
            swiftSettings: optionalSettings
        )
    ]

let package = Package(
    name: "WebService",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "WebServiceCore", targets: ["WebServiceCore"]),
        .library(name: "WebServiceMocking", targets: ["WebServiceMocking"]),
        .executable(name: "brewery", targets: ["Brewery"]),
    ] + curlProducts + sqliteProducts,
    targets: [
        .target(name: "WebServiceCore", swiftSettings: settings),
        .target(name: "WebServiceMocking", dependencies: ["WebServiceCore"], swiftSettings: settings),
        .executableTarget(
            name: "Brewery",
            dependencies: ["WebServiceCore", "WebServiceMocking"] + curlDependency + sqliteDependency,
            path: "Examples/Brewery",
            swiftSettings: optionalSettings
        ),
        .executableTarget(
            name: "session-probe",
            dependencies: ["WebServiceCore", "WebServiceMocking"] + curlDependency,
            path: "Tests/SessionProbe",
            swiftSettings: optionalSettings
        ),
        .executableTarget(
            name: "storage-probe",
            dependencies: ["WebServiceCore"] + sqliteDependency,
            path: "Tests/StorageProbe",
            swiftSettings: optionalSettings
        ),
        .testTarget(name: "WebServiceCoreTests", dependencies: ["WebServiceCore", "WebServiceMocking"], swiftSettings: settings),
        .testTarget(name: "WebServiceMockingTests", dependencies: ["WebServiceCore", "WebServiceMocking"], swiftSettings: settings),
        .testTarget(
            name: "GuideTests", dependencies: ["WebServiceCore", "WebServiceMocking"] + curlDependency + sqliteDependency,
            swiftSettings: optionalSettings
        ),
        .testTarget(
            name: "EndToEndTests", dependencies: ["WebServiceCore", "WebServiceMocking"] + curlDependency + sqliteDependency,
            swiftSettings: optionalSettings
        ),
    ] + curlTargets + sqliteTargets + fuzzTargets
)
