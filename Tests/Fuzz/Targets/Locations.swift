import Foundation

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension FuzzTarget {
    private static let references = [
        "/b/c?d=e#f", "../../g;h=1", "//other.example/p", "https://a.example:8443/x", "http://a.example:8443/",
        "https://user:pw@a.example/", "?q", "#f",
        "/\\other.example/", "\\\\other.example\\x", "https:g", "http:///x", "https://[::1]:8443/", "https://127.1/",
        "https://xn--bcher-kva.example/",
        "https://bücher.example/ä?ö=ü", "javascript:alert(1)", "/%2e%2e/%2F", "https://A.EXAMPLE.:8443", "/{id}",
    ]
    private static let pieces = [
        "https://", "http://", "//", "/\\", "\\\\", "@", ":8443", ":443", ":", "a.example", "other.example", "/../",
        "/./", "..", "%2e", "%5c", "?", "#",
        "[::1]", "[", "]", "\t", "https:", "://", "0x7f.1", "{", "}", "ß", "\u{3002}", "\u{2100}",
    ]

    static let locations: [FuzzTarget] = [
        FuzzTarget("reference", share: 20, seeds: references, tokens: pieces, check: checkReference),
        FuzzTarget("redirect", share: 16, seeds: references, tokens: pieces, check: checkRedirect),
        FuzzTarget("origin", share: 16, seeds: references, tokens: pieces, check: checkOrigin),
    ]

    @Sendable private static func checkReference(_ bytes: [UInt8]) throws {
        let reference = text(bytes)
        guard let target = URLReference.resolve(reference, against: "https://a.example:8443/dir/x?q#f") else {
            throw Finding(text: "a reference is not resolved")
        }
        try require(target.utf8.count <= reference.utf8.count + 40, "the target is longer than reference and base")
        try require(
            URLReference.resolve(target, against: "https://other.example/") == target,
            "resolving the target again changes it: \(target)")
    }

    @Sendable private static func checkRedirect(_ bytes: [UInt8]) throws {
        var request = Request(url: "https://a.example:8443/dir/x?q=1")
        request.headers[.authorization] = "canary"
        request.headers["X-Key"] = "canary"
        let decision = RedirectPolicy.follow.decision(
            for: request, at: "https://a.example:8443/dir/x?q=1", status: 302, locations: [text(bytes)], followed: 0)
        guard case .follow(let next, let droppedCredentials) = decision else { return }
        let url = try next.encode().url
        try require(
            url.utf8.allSatisfy { (0x21...0x7E).contains($0) && !#"\<>"{}^`|"#.utf8.contains($0) },
            "a byte is not encoded: \(url)")
        // Checks the bytes of the URL that is sent, without the URL parser of the framework.
        try require(url.hasPrefix("https://"), "the scheme is different: \(url)")
        let authority = url.dropFirst("https://".count).prefix { !"/?#".contains($0) }
        try require(!authority.isEmpty && !authority.contains("@"), "the authority is '\(authority)'")
        try require(
            (authority == "a.example:8443") == !droppedCredentials,
            "droppedCredentials does not match the origin of \(url)"
        )
        if droppedCredentials { try require(next.headers.isEmpty, "credentials are sent to \(url)") }
        try require(!url.contains("#"), "a fragment is sent: \(url)")
    }

    @Sendable private static func checkOrigin(_ bytes: [UInt8]) throws {
        guard let origin = Origin(text(bytes)) else { return }
        try require(Origin(origin.description) == origin, "the origin of \(origin) is different")
        try require(
            (1...65535).contains(origin.port) && ["http", "https"].contains(origin.scheme),
            "\(origin) is not a valid origin")
        try require(
            !origin.host.utf8.contains { $0 <= 0x20 || $0 >= 0x7F || #"/\?#@"#.utf8.contains($0) },
            "the host is '\(origin.host)'")
        guard let foundation = URL(string: origin.description + "/") else { return }
        try require(
            (foundation.host ?? "").asciiLowercased() == origin.host.trimmingCharacters(in: ["[", "]"]),
            "Foundation parses another host: \(origin)")
    }
}
