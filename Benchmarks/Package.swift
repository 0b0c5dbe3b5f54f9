// swift-tools-version: 6.1
import PackageDescription

let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "WebService", path: "..")],
    targets: [
        .executableTarget(
            name: "pipeline-bench",
            dependencies: [.product(name: "WebServiceCore", package: "WebService")],
            swiftSettings: [.swiftLanguageMode(.v6)]
        )
    ]
)
