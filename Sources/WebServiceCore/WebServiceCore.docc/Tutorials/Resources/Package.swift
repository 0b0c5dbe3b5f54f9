// swift-tools-version: 6.3
import PackageDescription

let package = Package(
    name: "BreweryKit",
    platforms: [.macOS(.v15), .iOS(.v18)],
    dependencies: [.package(name: "WebService", path: "../..")],
    targets: [
        .target(name: "BreweryKit", dependencies: [.product(name: "WebServiceCore", package: "WebService")]),
        .testTarget(
            name: "BreweryKitTests",
            dependencies: [
                "BreweryKit",
                .product(name: "WebServiceCassettes", package: "WebService"),
                .product(name: "WebServiceMocking", package: "WebService"),
                .product(name: "WebServiceServer", package: "WebService"),
                .product(name: "WebServiceTesting", package: "WebService"),
            ],
            resources: [.process("Cassettes")]
        ),
    ]
)
