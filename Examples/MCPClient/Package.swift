// swift-tools-version: 6.3
import PackageDescription

/// Whether the client uses `CurlSession`, which requires the headers of libcurl.
let withCurl = Context.environment["WEBSERVICE_WITHOUT_CURL"] != "1"

let package = Package(
    name: "MCPClient",
    platforms: [.macOS(.v15)],
    products: [.executable(name: "mcp-client", targets: ["MCPClient"])],
    dependencies: [.package(name: "WebService", path: "../..")],
    targets: [
        .executableTarget(
            name: "MCPClient",
            dependencies: [
                .product(name: "WebServiceCore", package: "WebService"),
                .product(name: "WebServiceDiagnostics", package: "WebService"),
                .product(name: "WebServiceOAuth", package: "WebService"),
                .product(name: "WebServiceStorage", package: "WebService"),
            ] + (withCurl ? [.product(name: "WebServiceCurl", package: "WebService")] : []),
            swiftSettings: withCurl ? [.define("WEBSERVICE_CURL")] : []),
        .testTarget(
            name: "MCPClientTests",
            dependencies: [
                "MCPClient",
                .product(name: "WebServiceCore", package: "WebService"),
                .product(name: "WebServiceFaults", package: "WebService"),
                .product(name: "WebServiceMocking", package: "WebService"),
                .product(name: "WebServiceServer", package: "WebService"),
            ]),
    ]
)
