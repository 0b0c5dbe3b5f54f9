// swift-tools-version: 6.1
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),  // swift-evolution SE-0335
    .enableUpcomingFeature("InternalImportsByDefault"),  // swift-evolution SE-0409
    .enableUpcomingFeature("MemberImportVisibility"),  // swift-evolution SE-0444
]

/// Whoever has no libcurl headers sets this, and gets a package without `WebServiceCurl`; `./scripts/test` does so by itself.
let withoutCurl = Context.environment["WEBSERVICE_WITHOUT_CURL"] == "1"

let curlTargets: [Target] =
    withoutCurl
    ? []
    : [
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
        .target(name: "WebServiceCurl", dependencies: ["WebServiceCore", "CCurl"], swiftSettings: settings),
        .testTarget(
            name: "WebServiceCurlTests", dependencies: ["WebServiceCore", "WebServiceCurl", "WebServiceMocking", "CCurl"],
            swiftSettings: settings
        ),
    ]
let curlProducts: [Product] = withoutCurl ? [] : [.library(name: "WebServiceCurl", targets: ["WebServiceCurl"])]
/// What the demo and the tests of the documentation need to use `WebServiceCurl` where it is there.
let curlDependency: [Target.Dependency] = withoutCurl ? [] : ["WebServiceCurl"]
let curlSettings: [SwiftSetting] = settings + (withoutCurl ? [] : [.define("WEBSERVICE_CURL")])

let package = Package(
    name: "WebService",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "WebServiceCore", targets: ["WebServiceCore"]),
        .library(name: "WebServiceMocking", targets: ["WebServiceMocking"]),
        .executable(name: "brewery", targets: ["Brewery"]),
    ] + curlProducts,
    targets: [
        .target(name: "WebServiceCore", swiftSettings: settings),
        .target(name: "WebServiceMocking", dependencies: ["WebServiceCore"], swiftSettings: settings),
        .executableTarget(
            name: "Brewery",
            dependencies: ["WebServiceCore", "WebServiceMocking"] + curlDependency,
            path: "Examples/Brewery",
            swiftSettings: curlSettings
        ),
        .executableTarget(
            name: "session-probe",
            dependencies: ["WebServiceCore", "WebServiceMocking"],
            path: "Tests/SessionProbe",
            swiftSettings: settings
        ),
        .testTarget(name: "WebServiceCoreTests", dependencies: ["WebServiceCore", "WebServiceMocking"], swiftSettings: settings),
        .testTarget(name: "WebServiceMockingTests", dependencies: ["WebServiceCore", "WebServiceMocking"], swiftSettings: settings),
        .testTarget(name: "GuideTests", dependencies: ["WebServiceCore", "WebServiceMocking"] + curlDependency, swiftSettings: curlSettings),
        .testTarget(name: "EndToEndTests", dependencies: ["WebServiceCore", "WebServiceMocking"], swiftSettings: curlSettings),
    ] + curlTargets
)
