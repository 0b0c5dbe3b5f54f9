import WebServiceCore

/// An element of the header field `Sec-WebSocket-Extensions` (RFC 6455, section 9.1).
struct ExtensionElement: Sendable, Hashable {
    struct Parameter: Sendable, Hashable {
        /// The name, in lower case.
        let name: String
        /// The value without quotes; `nil` if the parameter has none.
        let value: String?
    }

    /// The name of the extension, in lower case.
    let name: String
    let parameters: [Parameter]

    /// Returns the extensions in the values of all fields with the name, in order.
    ///
    /// - Returns: `nil` if a value is malformed.
    static func parse(_ fields: [String]) -> [ExtensionElement]? {
        var elements: [ExtensionElement] = []
        for field in fields {
            guard let parsed = parse(field) else { return nil }
            elements += parsed
        }
        return elements
    }

    private static func parse(_ field: String) -> [ExtensionElement]? {
        var scanner = FieldScanner(field)
        var elements: [ExtensionElement] = []
        while true {
            scanner.skipToMember()
            guard !scanner.rest.isEmpty else { return elements }
            let name = ASCII.lowercased(scanner.take(while: ASCII.isToken))
            var parameters: [Parameter] = []
            for parameter in scanner.parameters(isInList: true) {
                guard let parameter = Parameter(parameter) else { return nil }
                parameters.append(parameter)
            }
            guard !name.isEmpty, scanner.rest.isEmpty || scanner.take(",") else { return nil }
            elements.append(ExtensionElement(name: name, parameters: parameters))
        }
    }
}

extension ExtensionElement.Parameter {
    /// - Returns: `nil` if the name or the value is not a token.
    fileprivate init?(_ parameter: FieldScanner.Parameter) {
        guard ASCII.isToken(parameter.name.utf8) else { return nil }
        name = parameter.name
        switch parameter.form {
        case .absent: value = nil
        case .unterminated: return nil
        case .token, .quoted:
            guard ASCII.isToken(parameter.value) else { return nil }
            value = String(decoding: parameter.value, as: UTF8.self)
        }
    }
}
