import Foundation

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension FuzzTarget {
    static let cookies: [FuzzTarget] = [
        FuzzTarget(
            "cookie", share: 8,
            seeds: [
                "sid=1; Path=/; Secure; HttpOnly", "__Host-a=b; Path=/; Secure", "__Secure-a=b; Secure; Domain=example",
                "a=b; Domain=.a.example; Path=/x",
                "a=b; Expires=Wed, 21 Oct 2099 07:28:00 GMT, c=d; Max-Age=10", "a=\"b, c=d\"; path=x", "=x",
                "a=; Max-Age=-1",
                "pref=hello, __Host-sid=evil; Secure; Path=/",
            ],
            tokens: [
                "; ", "Path=/", "Domain=", "a.example", ".example", "; Secure", "; Max-Age=", "__Host-", "__Secure-",
                "; Expires=", ", x=", "=",
            ],
            check: checkCookies)
    ]

    @Sendable private static func checkCookies(_ bytes: [UInt8]) throws {
        let now = Date(timeIntervalSince1970: 1_700_000_000)
        for scheme in ["https", "http"] {
            guard let url = URL(string: "\(scheme)://b.a.example/dir/x"),
                let other = URL(string: "\(scheme)://other.test/dir/x")
            else { return }
            let jar = CookieJar(timekeeper: FixedDate(now))
            jar.store(bytes.split(separator: 0x0A).map { text($0) }, from: url)
            for cookie in jar.cookies {
                try require(["b.a.example", "a.example"].contains(cookie.domain), "the domain is \(cookie.domain)")
                try require(!cookie.isSecure || scheme == "https", "http sets a secure cookie")
                try require(cookie.path.hasPrefix("/"), "the path is \(cookie.path)")
                try require(cookie.name.utf8.count + cookie.value.utf8.count <= 4_096, "name and value are too long")
                let name = cookie.name.asciiLowercased()
                if name.hasPrefix("__host-") {
                    try require(
                        cookie.isSecure && cookie.isHostOnly && cookie.path == "/",
                        "\(name) is not limited to this host")
                }
                if name.hasPrefix("__secure-") { try require(cookie.isSecure, "\(name) is not secure") }
            }
            try require(jar.cookies.count <= CookieJar.maximumPerDomain * 2, "\(jar.cookies.count) cookies")
            let field = jar.header(for: url) ?? ""
            try require(
                field.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F },
                "the field holds a control character")
            try require(field.utf8.count <= Request.maximumHeaderValueLength, "the field is too long")
            try require(jar.header(for: other) == nil, "a cookie is sent to another host")
        }
    }
}

/// The system clock with a date that stands still.
private final class FixedDate: Timekeeper {
    let date: Date

    init(_ date: Date) { self.date = date }

    var instant: UInt64 { TaskClock.system.now }
    func schedule(after delay: Duration, _ target: any AlarmTarget) -> Alarm {
        TaskClock.system.schedule(after: delay, target)
    }
    func cancel(_ alarm: Alarm) { TaskClock.system.cancel(alarm) }
}
