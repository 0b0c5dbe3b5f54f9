import Foundation

@testable import WebServiceCore

extension FuzzTarget {
    static let json: [FuzzTarget] = [
        FuzzTarget(
            "json", share: 8, runs: 18, seeds: jsonSeeds(),
            tokens: [
                "[", "]", "{\"a\":", "}", "[[[[[[[[", "{\"a\":[", "null", "true", "1e400", "-0", "\"\\ud800\"",
                "\"\\\"", "\u{FEFF}", ",", ":",
            ],
            check: checkJSON)
    ]

    private static func jsonSeeds() -> [[UInt8]] {
        let own = [
            "{\"a\":[1,2.5e-3,-0,true,false,null,\"\\u00e9\\n\"],\"b\":{\"c\":{}}}", "[]", "\"text\"",
            "12345678901234567890", "[[[[[[[[[[]]]]]]]]]]",
            String(repeating: "[", count: 513), String(repeating: "{\"a\":", count: 513),
            String(repeating: "[", count: 512) + "{",
            String(repeating: "[", count: 512) + String(repeating: "]", count: 512),
        ].map { Array($0.utf8) }
        guard let corpora = ProcessInfo.processInfo.environment["WEBSERVICE_CORPORA"] else { return own }
        let folder = URL(fileURLWithPath: corpora).appendingPathComponent("JSONTestSuite/test_parsing")
        // The corpora are optional.
        let files = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
        // Skips unreadable files.
        let texts = files.sorted { $0.path < $1.path }.compactMap { try? Data(contentsOf: $0) }
        return own + texts.filter { $0.count <= Mutator.maximumLength }.map { [UInt8]($0) }
    }

    @Sendable private static func checkJSON(_ bytes: [UInt8]) throws {
        var wide: [UInt8] = [0xFF, 0xFE]
        if bytes.count <= 4 << 10 { for byte in bytes { wide += [byte, 0] } }
        for data in [Data(bytes), Data(wide), Data(wide.dropFirst(2))] {
            // Invalid input may throw.
            _ = try? JSON.decode(Int.self, from: data)
            _ = try? JSON.decode([String: JSONValue].self, from: data)
            if let object = try? JSON.object(from: data) {
                var request = Request(.POST, url: "https://h/")
                _ = try? request.serialize(json: object)
            }
            guard let value = try? JSONParser.value(from: data) else { continue }
            try require(depth(of: value) <= 512, "the value is \(depth(of: value)) deep")
        }
    }

    private static func depth(of value: JSONValue) -> Int {
        switch value {
        case .array(let values): 1 + (values.map { depth(of: $0) }.max() ?? 0)
        case .object(let values): 1 + (values.values.map { depth(of: $0) }.max() ?? 0)
        case .null, .bool, .integer, .unsigned, .double, .string: 0
        }
    }
}
