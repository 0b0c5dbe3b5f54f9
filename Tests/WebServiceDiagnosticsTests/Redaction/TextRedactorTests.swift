import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceDiagnostics

@Suite("Redaction of text", .permit)
struct TextRedactorTests {
    /// Redacts a text whose line breaks are `|`, because the output of the tests contains the
    /// arguments.
    private func text(_ text: String) -> String? {
        let lines = text.replacingOccurrences(of: "|", with: "\n")
        return Redaction.standard.body(Data(lines.utf8), contentType: "text/plain")?
            .replacingOccurrences(of: "\n", with: "|")
    }

    @Test(
        "The content of a private key is redacted, up to the end of the text if its last line is missing",
        arguments: [
            (
                "-----BEGIN PRIVATE KEY-----|canary|-----END PRIVATE KEY-----|ale",
                "-----BEGIN PRIVATE KEY-----|[redacted]|-----END PRIVATE KEY-----|ale"
            ),
            ("-----BEGIN EC PRIVATE KEY-----|canary", "-----BEGIN EC PRIVATE KEY-----|[redacted]"),
            (
                "-----BEGIN PGP PRIVATE KEY BLOCK-----|canary|-----END PGP PRIVATE KEY BLOCK-----",
                "-----BEGIN PGP PRIVATE KEY BLOCK-----|[redacted]|-----END PGP PRIVATE KEY BLOCK-----"
            ),
            ("-----BEGIN&token=canary&PRIVATE KEY/-----BEGIN", "-----BEGIN&token=[redacted]&PRIVATE KEY/-----BEGIN"),
            ("-----BEGIN PRIVATE KEY&token=canary&-----BEGIN PRIVATE KEY", "-----BEGIN PRIVATE KEY[redacted]"),
            (
                "-----BEGIN CERTIFICATE-----|ale|-----END CERTIFICATE-----",
                "-----BEGIN CERTIFICATE-----|ale|-----END CERTIFICATE-----"
            ),
        ])
    func privateKeys(body: String, expected: String) {
        #expect(text(body) == expected)
    }

    @Test(
        "Credentials after a scheme are redacted, and challenges and words are not",
        arguments: [
            ("sent Bearer canary-0123 to", "sent Bearer [redacted] to"), ("basic Y2FuYXJ5OjE=", "basic [redacted]"),
            ("Bearer realm=\"ale\"", "Bearer realm=\"ale\""), ("the bearer of messages", "the bearer of messages"),
            ("Basic knowledge", "Basic knowledge"), ("bearer", "bearer"),
        ])
    func schemes(body: String, expected: String) {
        #expect(text(body) == expected)
    }

    @Test(
        "The tokens of bots and the paths of webhooks are redacted",
        arguments: [
            ("/bot123456:canary-0123456789/send", "/bot123456:[redacted]/send"),
            ("/bot123456:canary-0/send", "/bot123456:[redacted]/send"), ("/bot123456:on", "/bot123456:on"),
            ("bot123456:canary-0", "bot123456:canary-0"),
            ("123456:AAcanary0123456789canary0123456789c", "123456:[redacted]"),
            ("123456:AAcanary", "123456:AAcanary"), ("bot12345:0123456789abcdefg", "bot12345:0123456789abcdefg"),
            ("https://hooks.slack.com/canary/0", "https://hooks.slack.com/[redacted]"),
            ("https://discord.com/api/webhooks/1/canary ale", "https://discord.com/api/webhooks/[redacted] ale"),
            ("https://discord.com/api/guides/1", "https://discord.com/api/guides/1"),
            ("https://hooks.slack.com/", "https://hooks.slack.com/"),
        ])
    func addresses(body: String, expected: String) {
        #expect(text(body) == expected)
    }

    @Test(
        "The passwords of a .netrc file are redacted, and its hosts and names are not",
        arguments: [
            ("machine a.test login ann password canary", "machine a.test login ann password [redacted]"),
            (
                "machine a.test|  login ann|  account canary|  password canary|machine b.test password canary",
                "machine a.test|  login ann|  account [redacted]|  password [redacted]|"
                    + "machine b.test password [redacted]"
            ),
            ("default login ann password canary", "default login ann password [redacted]"),
            ("machine learning needs a password", "machine learning needs a password"),
            ("the default login page", "the default login page"), ("default password rules", "default password rules"),
        ])
    func passwordFiles(body: String, expected: String) {
        #expect(text(body) == expected)
    }

    @Test(
        "Values in quotation marks that are references of HTML are redacted to their end",
        arguments: ["&quot;", "&#34;", "&#x22;", "&apos;", "&#39;", "&#x27;"])
    func references(quote: String) {
        let attribute = "{\(quote)token\(quote): \(quote)canary\\\(quote)canary\(quote), \(quote)a\(quote): 1}"
        #expect(text(attribute) == attribute.replacingOccurrences(of: "canary\\\(quote)canary", with: "[redacted]"))
    }

    @Test(
        "What follows the name in an end tag is redacted like text",
        arguments: [
            ("></|data: password=canary|></", "></|data: password=[redacted]|></"),
            ("<n></&access_token=canary&<n></", "<n></&access_token=[redacted]&<n></"),
            ("</ <password>canary</password>", "</ <password>[redacted]</password>"),
            ("<password>a</b canary></password>", "<password>[redacted]</b [redacted]></password>"),
            ("<a></a ><b></b>", "<a></a ><b></b>"), ("</a:password>x</password\t>", "</a:password>x</password\t>"),
        ])
    func endTags(body: String, expected: String) {
        let lines = body.replacingOccurrences(of: "|", with: "\n")
        let shown = Redaction.standard.body(Data(lines.utf8), contentType: "application/xml")
        #expect(shown?.replacingOccurrences(of: "\n", with: "|") == expected)
    }

    @Test(
        "The value after a name that is a value is redacted",
        arguments: [
            ("- name: API_KEY|  value: canary|", "- name: API_KEY|  value: [redacted]|"),
            ("- name: CITY|  value: ale|", "- name: CITY|  value: ale|"),
            ("key: token|other: 1|value: ale|", "key: token|other: 1|value: ale|"),
        ])
    func pairs(body: String, expected: String) {
        #expect(text(body) == expected)
    }
}
