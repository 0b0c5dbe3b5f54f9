// swift-tools-version: 6.3
import PackageDescription

let package = Package(
    name: "BreweryWeb",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "WebService", path: "../.."),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.0.0"),
    ],
    targets: [
        .executableTarget(
            name: "BreweryWeb",
            dependencies: [
                .product(name: "WebServiceCore", package: "WebService"),
                .product(name: "WebServiceCurl", package: "WebService"),
                .product(name: "Hummingbird", package: "hummingbird"),
            ]),
        .testTarget(
            name: "BreweryWebTests",
            dependencies: [
                "BreweryWeb",
                .product(name: "WebServiceCore", package: "WebService"),
                .product(name: "WebServiceCurl", package: "WebService"),
                .product(name: "WebServiceMocking", package: "WebService"),
                .product(name: "WebServiceServer", package: "WebService"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdTesting", package: "hummingbird"),
            ]),
    ]
)
