import Foundation
import WebServiceCore

/// A TLS configuration whose files have been read and checked.
struct TLSRules: Sendable {
    enum Authorities: Sendable {
        case system
        /// The path of a PEM file.
        case file(String)
        /// Certificates in PEM, and whether those of the system's directory are also trusted.
        case data(Data, usesSystemDirectory: Bool)
    }

    struct Identity: Sendable {
        let certificate: TLSMaterial
        /// `nil` if ``certificate`` contains the key.
        let key: TLSMaterial?
        let password: String?
    }

    let minimumVersion: CurlSession.TLS.Version
    let authorities: Authorities
    let identity: Identity?
    let pins: [String]

    /// Reads and checks the files of a configuration.
    ///
    /// - Throws: `WebServiceError.Code.curl` if a file is missing or has the wrong format.
    init(_ tls: CurlSession.TLS) throws(WebServiceError) {
        minimumVersion = tls.minimumVersion
        authorities = try Self.authorities(tls)
        pins = tls.pinnedPublicKeys
        guard let certificate = tls.clientCertificate else {
            identity = nil
            return
        }
        let material = try TLSMaterial(certificate.certificate, "the client certificate")
        try material.checkIdentity(password: certificate.password, containsKey: certificate.key == nil)
        var key: TLSMaterial?
        if let source = certificate.key {
            let material = try TLSMaterial(source, "the private key")
            try material.checkKey(password: certificate.password)
            key = material
        }
        try Self.check([material, key].compactMap(\.self))
        identity = Identity(certificate: material, key: key, password: certificate.password)
    }

    private static func authorities(_ tls: CurlSession.TLS) throws(WebServiceError) -> Authorities {
        let purpose = "the trusted certificates"
        var materials: [TLSMaterial] = []
        if let path = tls.trustedCertificatesFile { materials.append(try TLSMaterial(.file(path), purpose)) }
        if let data = tls.trustedCertificates { materials.append(try TLSMaterial(.data(data), purpose)) }
        var certificates = Data()
        for material in materials { certificates += try material.certificates() }
        guard let first = materials.first else { return .system }
        if materials.count == 1, !tls.includesSystemCertificates, first.format == .pem, let path = first.source.path {
            return .file(path)
        }
        guard tls.includesSystemCertificates else { return .data(certificates, usesSystemDirectory: false) }
        let store = TrustStore.system
        if store.hasCompleteDirectory { return .data(certificates, usesSystemDirectory: true) }
        guard let file = store.file, let system = FileManager.default.contents(atPath: file) else {
            throw WebServiceError(
                .curl, "the system's certificates were not found; set includesSystemCertificates to false")
        }
        return .data(certificates + system, usesSystemDirectory: store.needsDirectory)
    }

    /// The TLS libraries that read client certificates from memory.
    private static let librariesWithMemory = [
        "OpenSSL/", "LibreSSL/", "BoringSSL", "AWS-LC", "quictls/", "SecureTransport", "Schannel",
    ]

    private static func check(_ materials: [TLSMaterial]) throws(WebServiceError) {
        guard materials.contains(where: { $0.source.path == nil }) else { return }
        // libcurl lists TLS libraries that it does not currently use in parentheses.
        let library = CurlSession.library.tls?.split(separator: " ").first { !$0.hasPrefix("(") } ?? "no TLS"
        guard librariesWithMemory.contains(where: { library.hasPrefix($0) }) else {
            throw WebServiceError(
                .curl, "libcurl uses \(library), which reads client certificates from files only; specify their paths")
        }
    }
}

/// The TLS rules of the hosts of a session.
struct HostRules: Sendable {
    /// The rules. The first element applies to all hosts that do not have their own rules.
    let all: [TLSRules]
    /// The rules of an https proxy.
    let proxy: TLSRules
    /// The index of the rules, by the name of a host.
    private var hosts: [String: Int] = [:]
    /// The index of the rules, by the part of the host name after the asterisk, including the
    /// period.
    private var domains: [String: Int] = [:]

    /// - Throws: `WebServiceError.Code.curl`.
    init(_ configuration: CurlSession.Configuration) throws(WebServiceError) {
        var all = [try TLSRules(configuration.tls)]
        for (key, tls) in configuration.hostTLS.sorted(by: { $0.key < $1.key }) {
            let isDomain = key.utf8.starts(with: "*.".utf8)
            guard let host = Self.name(isDomain ? String(key.dropFirst(2)) : key),
                !isDomain || Self.isDomain(host)
            else {
                throw WebServiceError(
                    .curl, "a key of hostTLS is not a host name; use the form 'api.example.com' or '*.example.com'")
            }
            guard (isDomain ? domains["." + host] : hosts[host]) == nil else {
                throw WebServiceError(
                    .curl, "hostTLS has several values for \(isDomain ? "*." : "")\(host); remove all but one")
            }
            if isDomain { domains["." + host] = all.count } else { hosts[host] = all.count }
            all.append(try TLSRules(tls))
        }
        self.all = all
        var tls = configuration.proxyTLS ?? configuration.tls
        if configuration.proxyTLS == nil { (tls.pinnedPublicKeys, tls.clientCertificate) = ([], nil) }
        proxy = try TLSRules(tls)
    }

    /// Returns the index of the rules for a URL.
    ///
    /// - Throws: `WebServiceError.Code.curl` if hosts have their own rules and the host of the URL
    ///   is not known.
    func index(for url: String) throws(WebServiceError) -> Int {
        guard all.count > 1 else { return 0 }
        guard let host = Origin(url).map({ Self.withoutTrailingPeriod($0.host) }) else {
            throw WebServiceError(
                .curl, "the host of the URL is not valid, so its TLS configuration is unknown; correct the host")
        }
        if let index = hosts[host] { return index }
        // A domain name has at most 253 bytes.
        var rest = Substring(host.utf8.suffix(254))
        while let period = rest.utf8.firstIndex(of: UInt8(ascii: ".")) {
            if let index = domains[String(rest[period...])] { return index }
            rest = rest[period...].dropFirst()
        }
        return 0
    }

    /// Returns the host as `Origin` represents it; `nil` if the text is not a host without a
    /// port.
    private static func name(_ text: String) -> String? {
        let isIPv6 = text.utf8.first == UInt8(ascii: "[") && text.utf8.last == UInt8(ascii: "]")
        guard let origin = Origin("https://" + text), isIPv6 || !text.utf8.contains(UInt8(ascii: ":")),
            !text.utf8.contains(where: { "/?#*".utf8.contains($0) })
        else { return nil }
        return withoutTrailingPeriod(origin.host)
    }

    private static func withoutTrailingPeriod(_ host: String) -> String {
        host.hasSuffix(".") ? String(host.dropLast()) : host
    }

    /// Returns whether a host has subdomains, unlike an IP address.
    private static func isDomain(_ host: String) -> Bool {
        host.utf8.first != UInt8(ascii: "[") && host.utf8.contains { !(0x30...0x39).contains($0) && $0 != 0x2E }
    }
}
