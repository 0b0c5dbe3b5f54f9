// swift-tools-version: 6.3
import PackageDescription

/// Whether the client uses `CurlSession`, which requires the headers of libcurl.
let withCurl = Context.environment["WEBSERVICE_WITHOUT_CURL"] != "1"

let package = Package(
    name: "Todo",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "todo", targets: ["TodoClient"]),
        .executable(name: "todo-server", targets: ["TodoServer"]),
    ],
    dependencies: [.package(name: "WebService", path: "../..")],
    targets: [
        .executableTarget(
            name: "TodoClient",
            dependencies: [
                .product(name: "WebServiceCaching", package: "WebService"),
                .product(name: "WebServiceCore", package: "WebService"),
                .product(name: "WebServiceEndpoints", package: "WebService"),
                .product(name: "WebServiceOffline", package: "WebService"),
                .product(name: "WebServiceStorage", package: "WebService"),
            ] + (withCurl ? [.product(name: "WebServiceCurl", package: "WebService")] : []),
            swiftSettings: withCurl ? [.define("WEBSERVICE_CURL")] : []),
        .executableTarget(
            name: "TodoServer",
            dependencies: [
                .product(name: "WebServiceCore", package: "WebService"),
                .product(name: "WebServiceMocking", package: "WebService"),
                .product(name: "WebServiceServer", package: "WebService"),
            ]),
        .testTarget(
            name: "TodoTests",
            dependencies: [
                "TodoClient", "TodoServer",
                .product(name: "WebServiceCore", package: "WebService"),
                .product(name: "WebServiceFaults", package: "WebService"),
                .product(name: "WebServiceMocking", package: "WebService"),
                .product(name: "WebServiceOffline", package: "WebService"),
            ]),
    ]
)
