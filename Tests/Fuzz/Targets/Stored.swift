import Foundation
import WebServiceStorage

@testable import WebServiceCaching
@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension FuzzTarget {
    private static let key = StorageKey(identifier: "GET https://h/", account: "a")

    static let stored: [FuzzTarget] = [
        FuzzTarget(
            "variants", share: 20, seeds: variantSeeds(),
            tokens: ["WSC3", "WSC4", "\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{1}"],
            check: checkVariants)
    ]

    /// Entries without their checksum, which is appended to every input.
    private static func variantSeeds() -> [[UInt8]] {
        let request = Request(url: "https://h/")
        var variants = CachedVariants()
        var seeds = [[UInt8](variants.data(for: key).dropLast(8))]
        let file = CachedBody.File(name: "0123456789abcdef", count: 9)
        let stored: [(String, CachedBody)] = [
            ("Accept-Language", .data(Data("body".utf8))), ("X-One, X-Two", .data(Data())), ("X-One", .file(file, nil)),
        ]
        for (vary, body) in stored {
            let headers: Headers = ["Vary": vary, "ETag": "\"1\"", "X-Empty": "", "Cache-Control": "max-age=60"]
            guard let selection = try? CacheSelection(of: headers, to: request, account: "a")  // not storable
            else { continue }
            let date = Date(timeIntervalSince1970: 1_700_000_000)
            variants.insert(
                CachedResponse(
                    status: 200, headers: headers, body: body, requestTime: date, responseTime: date,
                    selection: selection), for: request)
            seeds.append([UInt8](variants.data(for: key).dropLast(8)))
        }
        return seeds
    }

    @Sendable private static func checkVariants(_ bytes: [UInt8]) throws {
        var data = Data(bytes)
        _ = CachedVariants(data, for: key)
        withUnsafeBytes(of: bytes.withUnsafeBytes { XXHash64.hash($0) }.littleEndian) { data.append(contentsOf: $0) }
        guard let variants = CachedVariants(data, for: key) else { return }
        try require(
            variants.responses.count <= CachedVariants.maximumCount, "there are \(variants.responses.count) responses")
        let date = Date(timeIntervalSince1970: 1_700_000_000)
        for response in variants.responses {
            try require((200...999).contains(response.status), "the status is \(response.status)")
            try require(response.lifetime(usesHeuristics: true) >= 0, "the lifetime is negative")
            try require(response.age(at: date) ?? 0 >= 0, "the age is negative")
            _ = (response.eTag, response.lastModified)
        }
        _ = variants.match(Request(url: "https://h/"))
        let again = CachedVariants(variants.data(for: key), for: key)
        try require(
            again?.responses.count == variants.responses.count, "the entry cannot be stored again after reading")
    }
}
