// swift-tools-version: 6.3
import PackageDescription

/// Whether the program uses `CurlSession`, which requires the headers of libcurl. Without it, only
/// the tests with mocks work.
let withCurl = Context.environment["WEBSERVICE_WITHOUT_CURL"] != "1"
let curl: [Target.Dependency] = withCurl ? [.product(name: "WebServiceCurl", package: "WebService")] : []
let settings: [SwiftSetting] = withCurl ? [.define("WEBSERVICE_CURL")] : []

let package = Package(
    name: "LiveScores",
    platforms: [.macOS(.v15)],
    products: [.executable(name: "live-scores", targets: ["LiveScores"])],
    dependencies: [.package(name: "WebService", path: "../..")],
    targets: [
        .executableTarget(
            name: "LiveScores",
            dependencies: [
                .product(name: "WebServiceCore", package: "WebService"),
                .product(name: "WebServiceMocking", package: "WebService"),
                .product(name: "WebServiceServer", package: "WebService"),
                .product(name: "WebServiceSockets", package: "WebService"),
            ] + curl,
            swiftSettings: settings),
        .testTarget(
            name: "LiveScoresTests",
            dependencies: [
                "LiveScores",
                .product(name: "WebServiceCore", package: "WebService"),
                .product(name: "WebServiceFaults", package: "WebService"),
                .product(name: "WebServiceMocking", package: "WebService"),
                .product(name: "WebServiceServer", package: "WebService"),
            ] + curl,
            swiftSettings: settings),
    ]
)
