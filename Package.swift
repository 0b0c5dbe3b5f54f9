// swift-tools-version: 6.1
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),  // swift-evolution SE-0335
    .enableUpcomingFeature("InternalImportsByDefault"),  // swift-evolution SE-0409
    .enableUpcomingFeature("MemberImportVisibility"),  // swift-evolution SE-0444
]

let package = Package(
    name: "WebService",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "WebServiceCore", targets: ["WebServiceCore"]),
        .library(name: "WebServiceMocking", targets: ["WebServiceMocking"]),
        .executable(name: "brewery", targets: ["Brewery"]),
    ],
    targets: [
        .target(name: "WebServiceCore", swiftSettings: settings),
        .target(name: "WebServiceMocking", dependencies: ["WebServiceCore"], swiftSettings: settings),
        .executableTarget(
            name: "Brewery",
            dependencies: ["WebServiceCore", "WebServiceMocking"],
            path: "Examples/Brewery",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "session-probe",
            dependencies: ["WebServiceCore", "WebServiceMocking"],
            path: "Tests/SessionProbe",
            swiftSettings: settings
        ),
        .testTarget(name: "WebServiceCoreTests", dependencies: ["WebServiceCore", "WebServiceMocking"], swiftSettings: settings),
        .testTarget(name: "WebServiceMockingTests", dependencies: ["WebServiceCore", "WebServiceMocking"], swiftSettings: settings),
        .testTarget(name: "GuideTests", dependencies: ["WebServiceCore", "WebServiceMocking"], swiftSettings: settings),
        .testTarget(name: "EndToEndTests", dependencies: ["WebServiceCore", "WebServiceMocking"], swiftSettings: settings),
    ]
)
