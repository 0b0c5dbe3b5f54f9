import CCurl
import Foundation
import WebServiceCore

extension CurlHandle {
    /// The options of libcurl for the TLS connection to servers or to a proxy.
    struct TLSOptions {
        let version, authorities, authoritiesData, folder, password, pins: CURLoption
        let certificate, certificateData, certificateType: CURLoption
        let key, keyData, keyType: CURLoption

        static let server = TLSOptions(
            version: CURLOPT_SSLVERSION, authorities: CURLOPT_CAINFO, authoritiesData: CURLOPT_CAINFO_BLOB,
            folder: CURLOPT_CAPATH, password: CURLOPT_KEYPASSWD, pins: CURLOPT_PINNEDPUBLICKEY,
            certificate: CURLOPT_SSLCERT, certificateData: CURLOPT_SSLCERT_BLOB, certificateType: CURLOPT_SSLCERTTYPE,
            key: CURLOPT_SSLKEY, keyData: CURLOPT_SSLKEY_BLOB, keyType: CURLOPT_SSLKEYTYPE)
        static let proxy = TLSOptions(
            version: CURLOPT_PROXY_SSLVERSION, authorities: CURLOPT_PROXY_CAINFO,
            authoritiesData: CURLOPT_PROXY_CAINFO_BLOB, folder: CURLOPT_PROXY_CAPATH,
            password: CURLOPT_PROXY_KEYPASSWD, pins: CURLOPT_PROXY_PINNEDPUBLICKEY,
            certificate: CURLOPT_PROXY_SSLCERT, certificateData: CURLOPT_PROXY_SSLCERT_BLOB,
            certificateType: CURLOPT_PROXY_SSLCERTTYPE, key: CURLOPT_PROXY_SSLKEY,
            keyData: CURLOPT_PROXY_SSLKEY_BLOB, keyType: CURLOPT_PROXY_SSLKEYTYPE)
    }

    /// Configures TLS for connections to a proxy. Does nothing if no proxy can require TLS.
    func configureProxy(_ configuration: CurlSession.Configuration) throws {
        switch configuration.proxy {
        case .none: return
        case .url, .authenticated:
            guard configuration.proxy.scheme == "https" else { return }
            guard CurlSession.Proxy.supportsHTTPS else {
                throw WebServiceError(.curl, "this build of libcurl does not support https proxies; use an http proxy")
            }
        case .environment, .perRequest: guard CurlSession.Proxy.supportsHTTPS else { return }
        }
        try configure(engine.rules.proxy, .proxy)
    }

    func configure(_ rules: TLSRules, _ options: TLSOptions) throws {
        let oldest = rules.minimumVersion == .tls13 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2
        try check(ccurl_set_long(easy, options.version, Int(oldest)), "the minimum TLS version")
        var usesDirectory = TrustStore.system.needsDirectory
        switch rules.authorities {
        case .system: break
        case .file(let file):
            try check(ccurl_set_string(easy, options.authorities, file), "the file of trusted certificates")
            usesDirectory = false
        case .data(let data, let usesSystemDirectory):
            try check(set(options.authoritiesData, data), "trusted certificates in memory")
            ccurl_set_string(easy, options.authorities, nil)
            usesDirectory = usesSystemDirectory
        }
        if !usesDirectory { try check(ccurl_set_string(easy, options.folder, nil), "an empty certificate directory") }
        ccurl_set_certificate_lifetime(easy, 300)
        if engine.configuration.recordsCertificates { ccurl_set_long(easy, CURLOPT_CERTINFO, 1) }
        if let identity = rules.identity { try configure(identity, options) }
        if !rules.pins.isEmpty {
            ccurl_set_long(easy, CURLOPT_CERTINFO, 1)  // for the error; some TLS libraries do not support it
            try check(
                ccurl_set_string(easy, options.pins, rules.pins.joined(separator: ";")), "the pinned public keys")
        }
    }

    private func configure(_ identity: TLSRules.Identity, _ options: TLSOptions) throws {
        func set(_ material: TLSMaterial, _ file: CURLoption, _ data: CURLoption) -> CURLcode {
            material.source.path.map { ccurl_set_string(easy, file, $0) } ?? self.set(data, material.bytes)
        }
        let certificate = identity.certificate
        try check(set(certificate, options.certificate, options.certificateData), "the client certificate")
        try check(
            ccurl_set_string(easy, options.certificateType, certificate.format.name),
            "the format of the client certificate")
        // If no key is set, libcurl reads the key from the certificate.
        if let key = identity.key {
            try check(set(key, options.key, options.keyData), "the private key")
            try check(ccurl_set_string(easy, options.keyType, key.format.name), "the format of the private key")
        }
        if let password = identity.password {
            try check(ccurl_set_string(easy, options.password, password), "the password of the private key")
        }
    }

    private func set(_ option: CURLoption, _ data: Data) -> CURLcode {
        data.withUnsafeBytes { ccurl_set_blob(easy, option, $0.baseAddress, $0.count) }
    }
}
