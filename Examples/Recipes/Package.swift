// swift-tools-version: 6.3
import PackageDescription

/// A Boolean value that indicates whether the package contains the recipe with Hummingbird, whose
/// dependencies take minutes to build.
let withHummingbird = Context.environment["WEBSERVICE_HUMMINGBIRD"] == "1"

let hummingbird: [Package.Dependency] =
    withHummingbird ? [.package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.0.0")] : []
let hummingbirdTargets: [Target] =
    withHummingbird
    ? [
        .target(
            name: "HummingbirdRecipe",
            dependencies: [
                .product(name: "WebServiceCore", package: "WebService"),
                .product(name: "Hummingbird", package: "hummingbird"),
            ]),
        .testTarget(
            name: "HummingbirdRecipeTests",
            dependencies: [
                "HummingbirdRecipe",
                .product(name: "WebServiceMocking", package: "WebService"),
                .product(name: "HummingbirdTesting", package: "hummingbird"),
            ]),
    ] : []

let package = Package(
    name: "Recipes",
    platforms: [.macOS(.v15), .iOS(.v18)],
    dependencies: [
        .package(name: "WebService", path: "../.."),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.1.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
    ] + hummingbird,
    targets: [
        .target(
            name: "Recipes",
            dependencies: [
                .product(name: "WebServiceCore", package: "WebService"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        .testTarget(
            name: "RecipesTests",
            dependencies: [
                "Recipes",
                .product(name: "WebServiceMocking", package: "WebService"),
                .product(name: "InMemoryLogging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
            ]),
    ] + hummingbirdTargets
)
