import Foundation

/// The contents of the public suite http-cache-tests.
enum HTTPCacheSuite {
    static let file = ProcessInfo.processInfo.environment["WEBSERVICE_CORPORA"].map {
        URL(fileURLWithPath: $0 + "/http-cache-tests/tests.json")
    }
    .flatMap { FileManager.default.fileExists(atPath: $0.path) ? $0 : nil }

    static func tests() throws -> [Test] {
        guard let file else { return [] }
        return try JSONDecoder().decode([Group].self, from: Data(contentsOf: file)).flatMap(\.tests)
    }

    private struct Group: Decodable { let tests: [Test] }

    struct Test: Decodable, Sendable {
        let id: String
        let kind: String?
        let browser_only: Bool?
        let cdn_only: Bool?
        let requests: [Step]

        var isRequired: Bool { kind ?? "required" == "required" }
    }

    /// One request and its response. Property names are those of the suite.
    struct Step: Decodable, Sendable {
        let request_method: String?
        let request_headers: [[Value]]?
        let request_body: String?
        let query_arg: String?
        let filename: String?
        let cache: String?
        let redirect: String?
        let magic_ims: Bool?
        let magic_locations: Bool?
        let rfc850date: [String]?
        let disconnect: Bool?
        let pause_after: Bool?
        let response_pause: Double?
        let response_status: [Value]?
        let response_headers: [[Value]]?
        let response_body: String?
        let interim_responses: [[Value]]?
        let check_body: Bool?
        let expected_type: String?
        let expected_status: Int?
        let expected_method: String?
        let expected_response_text: String?
        let expected_response_headers: [Value]?
        let expected_response_headers_missing: [Value]?
        let expected_request_headers: [[Value]]?

        var status: Int { if case .number(let status)? = response_status?.first { Int(status) } else { 200 } }
        var isValidated: Bool { expected_type?.hasSuffix("validated") == true }
    }

    enum Value: Decodable, Sendable {
        case text(String)
        case number(Double)
        case flag(Bool)
        case list([Value])
        case none

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() { self = .none; return }
            if let flag = try? container.decode(Bool.self) { self = .flag(flag); return }  // another kind of value
            if let number = try? container.decode(Double.self) { self = .number(number); return }  // as above
            if let text = try? container.decode(String.self) { self = .text(text); return }  // as above
            self = .list(try container.decode([Value].self))
        }

        /// Returns the string of a field. In a date field, a number is an offset from `now` in
        /// seconds.
        func text(of name: String, _ now: Date, rfc850: Bool = false) -> String {
            switch self {
            case .text(let text): return text
            case .number(let seconds)
            where ["date", "expires", "last-modified", "if-modified-since"].contains(name.lowercased()):
                return Self.date(
                    now.addingTimeInterval(seconds),
                    rfc850 ? "EEEE, dd-MMM-yy HH:mm:ss 'GMT'" : "EEE, dd MMM yyyy HH:mm:ss 'GMT'")
            case .number(let number): return String(Int(number))
            default: return ""
            }
        }

        var members: [Value] { if case .list(let members) = self { members } else { [self] } }

        private static func date(_ date: Date, _ format: String) -> String {
            let formatter = DateFormatter()
            formatter.locale = Locale(identifier: "en_US_POSIX")
            formatter.timeZone = TimeZone(identifier: "GMT")
            formatter.dateFormat = format
            return formatter.string(from: date)
        }
    }
}
