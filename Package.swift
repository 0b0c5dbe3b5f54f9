// swift-tools-version: 6.3
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),  // swift-evolution SE-0335
    .enableUpcomingFeature("InternalImportsByDefault"),  // swift-evolution SE-0409
    .enableUpcomingFeature("MemberImportVisibility"),  // swift-evolution SE-0444
]

/// A Boolean value that indicates whether `WebServiceCurl` is excluded from the package.
///
/// For systems without the headers of libcurl. `./scripts/test` sets the variable automatically.
let withoutCurl = Context.environment["WEBSERVICE_WITHOUT_CURL"] == "1"

let curlTargets: [Target] =
    withoutCurl
    ? []
    : [
        .systemLibrary(
            name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
        .target(name: "WebServiceCurl", dependencies: ["WebServiceCore", "CCurl"], swiftSettings: settings),
        .testTarget(
            name: "WebServiceCurlTests",
            dependencies: [
                "WebServiceCore", "WebServiceCurl", "WebServiceDiagnostics", "WebServiceDownloads",
                "WebServiceMocking", "CCurl", "TestSupport",
            ],
            exclude: ["Support/http3-server.py"],
            swiftSettings: settings
        ),
    ]
let curlProbes: [Target] =
    withoutCurl
    ? []
    : [
        .executableTarget(
            name: "socket-probe", dependencies: ["WebServiceCore", "WebServiceCurl", "WebServiceSockets"],
            path: "Tests/SocketProbe", swiftSettings: settings),
        .executableTarget(
            name: "call-probe", dependencies: ["WebServiceCore", "WebServiceCurl"],
            path: "Tests/CallProbe", exclude: ["Budgets.md"], swiftSettings: settings),
    ]
let curlProducts: [Product] = withoutCurl ? [] : [.library(name: "WebServiceCurl", targets: ["WebServiceCurl"])]
/// The dependency of the demo and the documentation tests on `WebServiceCurl`, if it is included.
let curlDependency: [Target.Dependency] = withoutCurl ? [] : ["WebServiceCurl"]

/// A Boolean value that indicates whether `WebServiceSQLite` is excluded from the package.
///
/// For systems without the headers of SQLite. `./scripts/test` sets the variable automatically.
let withoutSQLite = Context.environment["WEBSERVICE_WITHOUT_SQLITE"] == "1"

let sqliteTargets: [Target] =
    withoutSQLite
    ? []
    : [
        .systemLibrary(
            name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
        .target(
            name: "WebServiceSQLite", dependencies: ["WebServiceCore", "WebServiceOffline", "CSQLite"],
            swiftSettings: settings),
        .testTarget(
            name: "WebServiceSQLiteTests",
            dependencies: ["WebServiceCore", "WebServiceMocking", "WebServiceSQLite", "CSQLite", "TestSupport"],
            swiftSettings: settings
        ),
    ]
let sqliteProducts: [Product] = withoutSQLite ? [] : [.library(name: "WebServiceSQLite", targets: ["WebServiceSQLite"])]
let sqliteDependency: [Target.Dependency] = withoutSQLite ? [] : ["WebServiceSQLite"]

/// The settings of targets with optional dependencies on `WebServiceCurl` and `WebServiceSQLite`.
let optionalSettings: [SwiftSetting] =
    settings + (withoutCurl ? [] : [.define("WEBSERVICE_CURL")])
    + (withoutSQLite ? [] : [.define("WEBSERVICE_SQLITE")])

/// The fuzzer, which uses internal symbols: release builds need `-Xswiftc -enable-testing`.
///
/// `./scripts/soak` passes this flag.
let fuzzTargets: [Target] =
    Context.environment["WEBSERVICE_FUZZ"] != "1"
    ? []
    : [
        .executableTarget(
            name: "fuzz",
            dependencies: [
                "WebServiceCore", "WebServiceCaching", "WebServiceDiagnostics", "WebServiceFields",
                "WebServiceMocking", "WebServicePagination", "WebSocketCodec",
            ] + curlDependency,
            path: "Tests/Fuzz",
            swiftSettings: optionalSettings
        )
    ]

let package = Package(
    name: "WebService",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "WebServiceCore", targets: ["WebServiceCore"]),
        .library(name: "WebServiceCaching", targets: ["WebServiceCaching"]),
        .library(name: "WebServiceCallbacks", targets: ["WebServiceCallbacks"]),
        .library(name: "WebServiceCrypto", targets: ["WebServiceCrypto"]),
        .library(name: "WebServiceDiagnostics", targets: ["WebServiceDiagnostics"]),
        .library(name: "WebServiceDownloads", targets: ["WebServiceDownloads"]),
        .library(name: "WebServiceFields", targets: ["WebServiceFields"]),
        .library(name: "WebServiceMocking", targets: ["WebServiceMocking"]),
        .library(name: "WebServiceOffline", targets: ["WebServiceOffline"]),
        .library(name: "WebServicePagination", targets: ["WebServicePagination"]),
        .library(name: "WebServiceResilience", targets: ["WebServiceResilience"]),
        .library(name: "WebServiceSockets", targets: ["WebServiceSockets"]),
        .library(name: "WebServiceTesting", targets: ["WebServiceTesting"]),
        .library(name: "WebServiceUploads", targets: ["WebServiceUploads"]),
        .library(name: "WebServiceInspector", targets: ["WebServiceInspector"]),
        .executable(name: "brewery", targets: ["Brewery"]),
    ] + curlProducts + sqliteProducts,
    targets: [
        .target(name: "WebServiceCore", swiftSettings: settings),
        .target(
            name: "WebServiceCaching", dependencies: ["WebServiceCore", "WebServiceFields"], swiftSettings: settings),
        .target(name: "WebServiceCallbacks", dependencies: ["WebServiceCore"], swiftSettings: settings),
        .target(name: "WebServiceCrypto", dependencies: ["WebServiceCore", "SystemCrypto"], swiftSettings: settings),
        .target(name: "WebServiceDiagnostics", dependencies: ["WebServiceCore"], swiftSettings: settings),
        .target(
            name: "WebServiceDownloads", dependencies: ["WebServiceCore", "WebServiceFields", "SystemCrypto"],
            swiftSettings: settings),
        .target(name: "WebServiceFields", dependencies: ["WebServiceCore", "SystemCrypto"], swiftSettings: settings),
        .target(
            name: "WebServiceMocking",
            dependencies: ["WebServiceCore", "WebServiceDiagnostics", "WebServiceDownloads", "WebSocketCodec"],
            swiftSettings: settings),
        .target(name: "WebServiceOffline", dependencies: ["WebServiceCore"], swiftSettings: settings),
        .target(name: "WebServicePagination", dependencies: ["WebServiceCore"], swiftSettings: settings),
        .target(
            name: "WebServiceResilience", dependencies: ["WebServiceCore", "WebServiceFields"],
            swiftSettings: settings),
        .target(
            name: "WebServiceSockets", dependencies: ["WebServiceCore", "WebSocketCodec"], swiftSettings: settings),
        .target(
            name: "WebServiceTesting", dependencies: ["WebServiceCore", "WebServiceMocking"], swiftSettings: settings),
        .target(
            name: "WebServiceInspector",
            dependencies: ["WebServiceCore", "WebServiceDiagnostics", "WebServiceMocking"],
            resources: [
                .embedInCode("Page/inspector.html"), .embedInCode("Page/inspector.css"),
                .embedInCode("Page/bodies.css"), .embedInCode("Page/format.js"), .embedInCode("Page/markup.js"),
                .embedInCode("Page/bodies.js"), .embedInCode("Page/list.js"), .embedInCode("Page/waterfall.js"),
                .embedInCode("Page/search.js"), .embedInCode("Page/import.js"), .embedInCode("Page/send.js"),
                .embedInCode("Page/detail.js"),
                .embedInCode("Page/connection.js"),
            ],
            swiftSettings: settings),
        .target(
            name: "WebServiceUploads", dependencies: ["WebServiceCore", "WebServiceFields", "SystemCrypto"],
            swiftSettings: settings),
        // Without a product: for the modules that encrypt data or compute hashes of files.
        .target(name: "SystemCrypto", dependencies: ["WebServiceCore"], swiftSettings: settings),
        // Without a product: for the modules that open or accept connections.
        .target(name: "WebSocketCodec", dependencies: ["WebServiceCore"], swiftSettings: settings),
        .executableTarget(
            name: "Brewery",
            dependencies: [
                "WebServiceCore", "WebServiceCallbacks", "WebServiceDiagnostics", "WebServiceDownloads",
                "WebServiceInspector",
                "WebServiceMocking", "WebServicePagination",
            ] + curlDependency + sqliteDependency,
            path: "Examples/Brewery",
            exclude: ["README.md"],
            swiftSettings: optionalSettings
        ),
        .executableTarget(
            name: "session-probe",
            dependencies: ["WebServiceCore", "WebServiceDownloads", "WebServiceMocking", "WebServiceUploads"]
                + curlDependency,
            path: "Tests/SessionProbe",
            swiftSettings: optionalSettings
        ),
        .executableTarget(
            name: "storage-probe",
            dependencies: ["WebServiceCore"] + sqliteDependency,
            path: "Tests/StorageProbe",
            swiftSettings: optionalSettings
        ),
        .executableTarget(
            name: "outbox-probe",
            dependencies: ["WebServiceCore", "WebServiceOffline"] + curlDependency + sqliteDependency,
            path: "Tests/OutboxProbe", swiftSettings: optionalSettings
        ),
        .executableTarget(
            name: "inspector-probe",
            dependencies: [
                "WebServiceCore", "WebServiceCaching", "WebServiceInspector", "WebServiceMocking", "WebServiceSockets",
            ],
            path: "Tests/InspectorProbe",
            swiftSettings: settings
        ),
        .target(
            name: "TestSupport", dependencies: ["WebServiceCore", "WebServiceMocking"], path: "Tests/TestSupport",
            exclude: ["Disk/disk-log.c"],
            swiftSettings: settings),
        .testTarget(
            name: "WebServiceCoreTests",
            dependencies: [
                "WebServiceCore", "WebServiceCaching", "WebServiceCallbacks", "WebServiceDiagnostics",
                "WebServiceDownloads",
                "WebServiceMocking", "WebServicePagination", "WebServiceResilience", "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "WebServiceCallbacksTests",
            dependencies: ["WebServiceCore", "WebServiceCallbacks", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "WebServiceCachingTests",
            dependencies: [
                "WebServiceCore", "WebServiceCaching", "WebServiceDiagnostics", "WebServiceMocking", "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "WebServiceCryptoTests",
            dependencies: [
                "WebServiceCore", "WebServiceCaching", "WebServiceCrypto", "WebServiceMocking", "SystemCrypto",
                "TestSupport",
            ] + sqliteDependency,
            swiftSettings: optionalSettings),
        .testTarget(
            name: "WebServiceDiagnosticsTests",
            dependencies: [
                "WebServiceCore", "WebServiceDiagnostics", "WebServiceMocking", "WebServiceSockets", "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "WebServiceDownloadsTests",
            dependencies: ["WebServiceCore", "WebServiceDownloads", "WebServiceMocking", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "WebServiceFieldsTests", dependencies: ["WebServiceCore", "WebServiceFields", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "WebServiceMockingTests",
            dependencies: [
                "WebServiceCore", "WebServiceCaching", "WebServiceCallbacks", "WebServiceDownloads",
                "WebServiceMocking", "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "WebServiceOfflineTests",
            dependencies: [
                "WebServiceCore", "WebServiceCaching", "WebServiceDownloads", "WebServiceMocking", "WebServiceOffline",
                "WebServiceResilience", "WebServiceSockets", "WebServiceUploads", "TestSupport",
            ] + curlDependency + sqliteDependency,
            swiftSettings: optionalSettings),
        .testTarget(
            name: "WebServicePaginationTests",
            dependencies: ["WebServiceCore", "WebServiceMocking", "WebServicePagination", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "WebServiceResilienceTests",
            dependencies: [
                "WebServiceCore", "WebServiceDiagnostics", "WebServiceMocking", "WebServiceResilience", "TestSupport",
            ] + curlDependency,
            swiftSettings: optionalSettings),
        .testTarget(
            name: "WebServiceTestingTests",
            dependencies: ["WebServiceCore", "WebServiceMocking", "WebServiceTesting", "TestSupport"],
            exclude: ["Cassettes"],
            swiftSettings: settings),
        .testTarget(
            name: "WebServiceInspectorTests",
            dependencies: [
                "WebServiceCore", "WebServiceCaching", "WebServiceDiagnostics", "WebServiceInspector",
                "WebServiceMocking", "WebServiceOffline", "WebServiceResilience", "WebServiceSockets", "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "WebSocketCodecTests",
            dependencies: ["WebServiceCore", "WebSocketCodec", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "WebServiceSocketsTests",
            dependencies: [
                "WebServiceCore", "WebServiceMocking", "WebServiceSockets", "WebSocketCodec", "TestSupport",
            ] + curlDependency,
            swiftSettings: optionalSettings),
        .testTarget(
            name: "WebServiceUploadsTests",
            dependencies: [
                "WebServiceCore", "WebServiceFields", "WebServiceMocking", "WebServiceUploads", "SystemCrypto",
                "TestSupport",
            ] + curlDependency,
            exclude: ["Support/tus-server.py"],
            swiftSettings: optionalSettings),
        .testTarget(
            name: "GuideTests",
            dependencies: [
                "WebServiceCore", "WebServiceCaching", "WebServiceCallbacks", "WebServiceCrypto",
                "WebServiceDiagnostics",
                "WebServiceDownloads", "WebServiceFields",
                "WebServiceInspector", "WebServiceMocking", "WebServiceOffline", "WebServicePagination",
                "WebServiceResilience", "WebServiceSockets", "WebServiceTesting", "WebServiceUploads",
                "TestSupport",
            ]
                + curlDependency + sqliteDependency,
            exclude: ["Cassettes"],
            swiftSettings: optionalSettings
        ),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "WebServiceCore", "WebServiceCaching", "WebServiceDiagnostics", "WebServiceDownloads",
                "WebServiceFields", "WebServiceMocking", "WebServicePagination", "WebServiceResilience", "TestSupport",
            ]
                + curlDependency + sqliteDependency,
            swiftSettings: optionalSettings
        ),
    ] + curlTargets + curlProbes + sqliteTargets + fuzzTargets
)
