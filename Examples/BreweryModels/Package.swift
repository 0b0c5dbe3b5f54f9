// swift-tools-version: 6.3
import PackageDescription

let package = Package(
    name: "BreweryModels",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [.library(name: "BreweryModels", targets: ["BreweryModels"])],
    dependencies: [.package(name: "WebService", path: "../..")],
    targets: [
        .target(
            name: "BreweryModels",
            dependencies: [
                .product(name: "WebServiceCore", package: "WebService"),
                .product(name: "WebServiceEndpoints", package: "WebService"),
                .product(name: "WebServicePagination", package: "WebService"),
                .product(name: "WebServiceStorage", package: "WebService"),
                .product(name: "WebServiceTransfers", package: "WebService"),
            ]),
        .testTarget(
            name: "BreweryModelsTests",
            dependencies: [
                "BreweryModels",
                .product(name: "WebServiceMocking", package: "WebService"),
                .product(name: "WebServiceServer", package: "WebService"),
            ]),
    ]
)
