import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceTransfers

@Suite("Repr-Digest and Content-Digest", .permit)
struct DigestFieldTests {
    private static let short = SHA2.sha256.hash(Data("{\"hello\": \"world\"}\n".utf8))
    private static let long = SHA2.sha512.hash(Data("{\"hello\": \"world\"}\n".utf8))
    private static let sha256 = "sha-256=:\(Data(short).base64EncodedString()):"
    private static let sha512 = "sha-512=:\(Data(long).base64EncodedString()):"

    @Test("The digests of RFC 9530 are read")
    func examples() {
        #expect(DigestField.digests("sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:") == [.sha256: Self.short])
        #expect(DigestField.digests("\(Self.sha256),\t \(Self.sha512)") == [.sha256: Self.short, .sha512: Self.long])
        #expect(DigestField.digests("sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg:") == [.sha256: Self.short])
    }

    @Test(
        "Algorithms that are not supported, other types and parameters are ignored",
        arguments: [
            "md5=:SGVsbG8=:, %", "% , unixsum=30637", "%, sha, a;b;c=\"d\\\"\", e=(1 \"two\" :aGk=:;x);y=?0",
            "a=@1659578233, b=-1.5, *c=foo/bar:baz, %", "  %  ", "id-sha-256=:SGVsbG8=:,%;q=1",
        ])
    func ignored(pattern: String) {
        let value = pattern.replacingOccurrences(of: "%", with: Self.sha256)
        #expect(DigestField.digests(value) == [.sha256: Self.short])
    }

    @Test(
        "A value that is not a dictionary has no digests",
        arguments: [
            "", " ", "%,", ",%", "%,,%", "% %", "%;", "SHA-256=:SGVsbG8=:, %", "%, a=", "%, a=(1", "%, a=\"",
            "%, a=?2", "%, a=1.", "%, a=1.2345", "%, a=1234567890123456", "%, a=@1.0", "%, a=:SGVs*G8=:",
            "%, a=:SGVsbG8=",
            "%, a=\"\u{80}\"", "%, a=\"\\a\"", "%, a=--1", "sha-256=RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=",
            "sha-256=\"RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=\"", "sha-256=:AA==:", "sha-256=::", "sha-256",
        ])
    func malformed(pattern: String) {
        #expect(DigestField.digests(pattern.replacingOccurrences(of: "%", with: Self.sha256)) == [:])
    }

    @Test("Of a repeated key, the last value counts")
    func repeated() {
        #expect(DigestField.digests("sha-256=:AA==:, \(Self.sha256)") == [.sha256: Self.short])
        #expect(DigestField.digests("\(Self.sha256), sha-256=?1") == [:])
    }
}
