// swift-tools-version: 6.1
import PackageDescription

let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "WebService", path: ".."),
        .package(url: "https://github.com/swift-server/async-http-client", exact: "1.37.0"),
    ],
    targets: [
        .executableTarget(
            name: "pipeline-bench",
            dependencies: [.product(name: "WebServiceCore", package: "WebService")],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
        .target(name: "CurlFloor", linkerSettings: [.linkedLibrary("curl")]),
        .executableTarget(
            name: "transport-bench",
            dependencies: [
                "CurlFloor",
                .product(name: "WebServiceCore", package: "WebService"),
                .product(name: "WebServiceCurl", package: "WebService"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
            ],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
    ]
)
