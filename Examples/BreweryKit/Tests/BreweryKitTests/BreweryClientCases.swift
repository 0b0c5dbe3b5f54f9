#if canImport(XCTest)
@testable import BreweryKit
import WebServiceMocking
import WebServiceTesting
import XCTest

/// The same style of tests with XCTest.
final class BreweryClientCases: XCTestCase {
    func testOrderIsSentAsJSON() async throws {
        try await withMockService("https://brewery.test/v1") { mock in
            mock.on(.method(.POST) && .path("/v1/orders") && .json(["kegs": 2]), .status(201)).times(1)
            try await BreweryClient(service: mock.service).order(Order(brewer: 1, kegs: 2))
        }
    }
}
#endif
