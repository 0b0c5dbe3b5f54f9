// swift-tools-version: 6.3
import PackageDescription

/// Whether the program uses `CurlSession`, which requires the headers of libcurl.
let withCurl = Context.environment["WEBSERVICE_WITHOUT_CURL"] != "1"

let package = Package(
    name: "BreweryCLI",
    platforms: [.macOS(.v15)],
    products: [.executable(name: "brewery-cli", targets: ["BreweryCLI"])],
    dependencies: [
        .package(name: "WebService", path: "../.."),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
    ],
    targets: [
        .executableTarget(
            name: "BreweryCLI",
            dependencies: [
                .product(name: "WebServiceCore", package: "WebService"),
                .product(name: "WebServiceDiagnostics", package: "WebService"),
                .product(name: "WebServiceTransfers", package: "WebService"),
                .product(name: "WebServiceMocking", package: "WebService"),
                .product(name: "WebServiceServer", package: "WebService"),
                .product(name: "WebServicePagination", package: "WebService"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ] + (withCurl ? [.product(name: "WebServiceCurl", package: "WebService")] : []),
            swiftSettings: withCurl ? [.define("WEBSERVICE_CURL")] : []),
        .testTarget(
            name: "BreweryCLITests",
            dependencies: [
                "BreweryCLI",
                .product(name: "WebServiceCore", package: "WebService"),
                .product(name: "WebServiceMocking", package: "WebService"),
                .product(name: "WebServiceServer", package: "WebService"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
    ]
)
