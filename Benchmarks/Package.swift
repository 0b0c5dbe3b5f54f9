// swift-tools-version: 6.3
import PackageDescription

/// Without libcurl, only the benchmarks that need no transport are built, and nothing is fetched
/// for them.
let withoutCurl = Context.environment["WEBSERVICE_WITHOUT_CURL"] == "1"

/// Without SQLite, the storage benchmark is not built.
let withoutSQLite = Context.environment["WEBSERVICE_WITHOUT_SQLITE"] == "1"

let transports: [Target] = [
    .target(name: "CurlFloor", linkerSettings: [.linkedLibrary("curl")]),
    .executableTarget(
        name: "transport-bench",
        dependencies: [
            "CurlFloor",
            .product(name: "WebServiceCore", package: "WebService"),
            .product(name: "WebServiceCurl", package: "WebService"),
            .product(name: "AsyncHTTPClient", package: "async-http-client"),
            .product(name: "NIOSSL", package: "swift-nio-ssl"),
        ],
        exclude: ["Peers"],
        swiftSettings: [.swiftLanguageMode(.v6)]
    ),
]
let transfers: [Target] = [
    .executableTarget(
        name: "transfer-bench",
        dependencies: [
            .product(name: "WebServiceCore", package: "WebService"),
            .product(name: "WebServiceCurl", package: "WebService"),
            .product(name: "WebServiceTransfers", package: "WebService"),
            .product(name: "WebServiceMocking", package: "WebService"),
            .product(name: "WebServiceServer", package: "WebService"),
            .product(name: "AsyncHTTPClient", package: "async-http-client"),
        ],
        swiftSettings: [.swiftLanguageMode(.v6)]
    )
]
let sockets: [Target] = [
    .executableTarget(
        name: "socket-bench",
        dependencies: [
            "CurlFloor",
            .product(name: "WebServiceCore", package: "WebService"),
            .product(name: "WebServiceCurl", package: "WebService"),
            .product(name: "WebServiceSockets", package: "WebService"),
            .product(name: "NIOCore", package: "swift-nio"),
            .product(name: "NIOHTTP1", package: "swift-nio"),
            .product(name: "NIOPosix", package: "swift-nio"),
            .product(name: "NIOWebSocket", package: "swift-nio"),
        ],
        exclude: ["Peers"],
        swiftSettings: [.swiftLanguageMode(.v6)]
    )
]
let storages: [Target] = [
    .target(name: "SQLiteFloor", linkerSettings: [.linkedLibrary("sqlite3")]),
    .executableTarget(
        name: "storage-bench",
        dependencies: [
            "SQLiteFloor",
            .product(name: "WebServiceCore", package: "WebService"),
            .product(name: "WebServiceSQLite", package: "WebService"),
            .product(name: "WebServiceStorage", package: "WebService"),
        ],
        swiftSettings: [.swiftLanguageMode(.v6)]
    ),
]
let peers: [Package.Dependency] = [
    .package(url: "https://github.com/swift-server/async-http-client", exact: "1.37.0"),
    .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl", exact: "2.37.6"),
]

let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "WebService", path: "..")] + (withoutCurl ? [] : peers),
    targets: [
        .executableTarget(
            name: "pipeline-bench",
            dependencies: [
                .product(name: "WebServiceCore", package: "WebService"),
                .product(name: "WebServiceEndpoints", package: "WebService"),
            ],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
        .executableTarget(
            name: "server-bench",
            dependencies: [
                .product(name: "WebServiceMocking", package: "WebService"),
                .product(name: "WebServiceServer", package: "WebService"),
            ],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
    ] + (withoutCurl ? [] : transports + transfers + sockets) + (withoutSQLite ? [] : storages)
)
