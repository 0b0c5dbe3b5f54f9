import Foundation
import SystemCrypto
import TestSupport
import Testing
import WebServiceCore

@Suite("Signatures with P-256", .permit)
struct P256KeyTests {
    private func bytes(_ text: String) throws -> Data {
        let standard = text.replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        return try #require(Data(base64Encoded: standard + String(repeating: "=", count: (4 - text.count % 4) % 4)))
    }

    @Test("The key and the signature of RFC 7515, appendix A.3")
    func example() throws {
        let key = try P256Key(privateKey: bytes("jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"))
        let (x, y) = ("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")
        #expect(try key.publicKey == bytes(x) + bytes(y))
        let content = Data(
            ("eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQog"
                + "Imh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ").utf8)
        let signature = try bytes(
            "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q")
        #expect(P256Key.isValid(signature, of: content, publicKey: key.publicKey))
        #expect(!P256Key.isValid(signature, of: content + [0], publicKey: key.publicKey))
        #expect(P256Key.isValid(try key.signature(of: content), of: content, publicKey: key.publicKey))
    }

    @Test("Signatures of random keys are valid only for their content and key")
    func randomKeys() throws {
        let (first, second) = (try P256Key(), try P256Key())
        #expect(first != second)
        // Among many signatures, some have numbers that begin with zeros.
        for number in 0..<amount(100, thorough: 2_000) {
            let content = Data("content \(number)".utf8)
            let signature = try first.signature(of: content)
            #expect(signature.count == 64)
            #expect(P256Key.isValid(signature, of: content, publicKey: first.publicKey))
            if number < 10 { #expect(!P256Key.isValid(signature, of: content, publicKey: second.publicKey)) }
        }
    }

    @Test("Keys of openssl in both forms of PEM are read")
    func pem() throws {
        let sec1 = """
            -----BEGIN EC PRIVATE KEY-----
            MHcCAQEEIHXpHMxJTn3EcmgSZsEpL7heZJl4P67OJQvJXSokppy9oAoGCCqGSM49
            AwEHoUQDQgAEMmRfUPlKH+v3u3jgeHSU2BQ6BocCcHqo2qllDBGQgU5KFWwZbqQJ
            PFdTNLbd0C1jvIziUf8NK7unsfxflAuzgw==
            -----END EC PRIVATE KEY-----
            """
        let pkcs8 = """
            -----BEGIN PRIVATE KEY-----
            MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgdekczElOfcRyaBJm
            wSkvuF5kmXg/rs4lC8ldKiSmnL2hRANCAAQyZF9Q+Uof6/e7eOB4dJTYFDoGhwJw
            eqjaqWUMEZCBTkoVbBlupAk8V1M0tt3QLWO8jOJR/w0ru6ex/F+UC7OD
            -----END PRIVATE KEY-----
            """
        let (first, second) = (try P256Key(pem: sec1), try P256Key(pem: pkcs8))
        #expect(first == second)
        #expect(first == (try P256Key(privateKey: first.privateKey)))
        #expect(throws: WebServiceError.self) { try P256Key(pem: sec1.replacingOccurrences(of: "M", with: "N")) }
        #expect(throws: WebServiceError.self) { try P256Key(pem: "") }
        #expect(throws: WebServiceError.self) { try P256Key(pem: P256KeyTests.p384) }
    }

    @Test("Numbers that are not a key are refused", arguments: [0, 31, 33])
    func invalidKeys(count: Int) {
        #expect(throws: WebServiceError.self) { try P256Key(privateKey: Data(repeating: 1, count: count)) }
    }

    /// A key on another curve.
    private static let p384 = """
        -----BEGIN PRIVATE KEY-----
        MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDDm1BHXmUPLv4oT9UNp
        aTKNz5KQ3SnSbkHijhMBIEOS1mvGinFs7D8VDww0SFna7yyhZANiAARuTBFVUuwM
        MWIPgWwHJfAsuYgAMrJ61yrwpUBJVovfwI/QraEfVeE8HFuDC5S1yVTBSuLIN7NB
        QK5wIMu5OyVmFwLobmXfdwyt+1p1/UIZuolI1eCrCkcHJ+vuLlGhLHs=
        -----END PRIVATE KEY-----
        """
}
