import WebServiceCore

/// Redaction of JSON text that may be truncated or consist of several values (RFC 8259, RFC 7464).
extension TextRedactor {
    /// A string, a literal or a bracket.
    fileprivate struct Node {
        enum Kind { case name, string, literal, object, array, end }
        var kind: Kind
        /// The index of this node.
        let index: Int
        /// The bytes of the node, without quotation marks.
        let range: Range<Int>
        /// The index of the node that follows the value.
        var next: Int
    }

    /// The rules for the members of an object, or the elements of an array.
    fileprivate struct Container {
        enum Content {
            case ordinary
            /// All strings are secret.
            case secret
            /// The strings are secret, except those in nested arrays and objects.
            case secrets
            /// The names are those of fields, and the strings are human-readable text.
            case labels
            /// The same as `labels`, but only for strings that consist of several words.
            case messages
        }
        let end: Int
        var content = Content.ordinary
        /// Whether `token` refers to a part of a text.
        var isLanguage = false
        /// The meaning that `value` has because of the name in a pair such as `{"name": …, "value":
        /// …}`.
        var value = SecretName.harmless
        /// The names, in lower case, that are secret because the object also has a member such as
        /// `kty`.
        var secretNames: Set<String> = []
    }

    /// Redacts a range if it is JSON.
    ///
    /// - Returns: `false` if the range is not JSON. In that case, nothing is redacted.
    mutating func json(_ range: Range<Int>) -> Bool {
        guard var nodes = nodes(range), !nodes.isEmpty else { return false }
        // An array is used instead of recursion, because the peer determines the depth.
        var containers: [Container] = []
        lazy var isAuthorization = nodes.contains {
            $0.kind == .name && OAuthContext.keys.contains(String(decoding: bytes[$0.range], as: UTF8.self))
        }
        let end = range.upperBound
        nodes.append(Node(kind: .end, index: nodes.count, range: end..<end, next: nodes.count + 1))
        var index = 0
        while index < nodes.count - 1 {
            while let last = containers.last, index >= last.end { _ = containers.popLast() }
            let container = containers.last ?? Container(end: nodes.count)
            let node = nodes[index]
            index += 1
            switch node.kind {
            case .literal, .end: continue
            case .string:
                string(node, isSecret: container.content == .secret || container.content == .secrets)
            case .array, .object:
                containers.append(
                    self.container(node, nodes, container.content == .secrets ? .ordinary : container.content))
            case .name:
                string(node, isSecret: false)
                let name = plain(node.range)
                let value = nodes[index]
                let content = content(of: name, value, in: container, nodes, isAuthorization: { isAuthorization })
                switch value.kind {
                case .string: string(value, isSecret: content == .secret || content == .secrets)
                case .array, .object: containers.append(self.container(value, nodes, content))
                case .literal: break
                case .name, .end: continue
                }
                index += 1
            }
        }
        return true
    }

    /// Returns the rules for the value of a name.
    private func content(
        of name: String, _ value: Node, in container: Container, _ nodes: [Node], isAuthorization: () -> Bool
    ) -> Container.Content {
        if container.content == .secret { return .secret }
        if container.content == .labels { return .labels }
        if !container.secretNames.isEmpty, container.secretNames.contains(name.asciiLowercased()),
            name.utf8.count <= 3 || value.range.count >= 16
        {
            return .secret
        }
        var meaning = rules.meaning(of: name)
        if container.isLanguage, name.utf8.count <= 5 { meaning = .harmless }
        if name.utf8.count == 5, name.asciiLowercased() == "value" { meaning = container.value }
        switch value.kind {
        case .string:
            let text = bytes[value.range]
            if container.content == .secrets { return rules.isSecret(.secret, text, .json) ? .secret : .ordinary }
            if container.content == .messages, text.contains(0x20) { return .ordinary }
            if case .code = meaning { return isAuthorization() ? .secret : .ordinary }
            return rules.isSecret(meaning, text, .json) ? .secret : .ordinary
        case .array, .object:
            switch meaning {
            case .secret
            where value.kind == .array
                || !isDescription(value, nodes) && !self.container(value, nodes, .ordinary).isLanguage:
                return container.content == .messages ? .messages : .secret
            case .list: return .secrets
            default: break
            }
            guard case .ordinary = container.content else {
                return container.content == .messages ? .messages : .ordinary
            }
            let word = name.utf8.count <= 24 ? SecretName.words(of: name).last ?? "" : ""
            if Self.labels.contains(word) { return .labels }
            return Self.messages.contains(word) ? .messages : .ordinary
        case .name, .literal, .end: return .ordinary
        }
    }

    private mutating func string(_ node: Node, isSecret: Bool) {
        let content = bytes[node.range]
        let isEscaped = content.contains(UInt8(ascii: "\\"))
        if isSecret {
            guard rules.isSecret(.secret, content, .json) else { return }
            let secret = String(decoding: isEscaped ? JSONLiteral.unescaped(content) : Array(content), as: UTF8.self)
            edit(node.range, JSONLiteral.escaped(rules.redaction.replacement(of: secret).utf8))
        } else if isEscaped {
            nested(node.range, .json)
        } else {
            let count = edits.count
            value(node.range)
            // A placeholder may contain quotation marks.
            if edits.count > count { escapeEdits(from: count) }
        }
    }

    private func plain(_ range: Range<Int>) -> String {
        let content = bytes[range]
        let isEscaped = content.contains(UInt8(ascii: "\\"))
        return String(decoding: isEscaped ? JSONLiteral.unescaped(content) : Array(content), as: UTF8.self)
    }

    // MARK: Objects

    /// Returns the rules for the members of an object, which depend on its names.
    private func container(_ node: Node, _ nodes: [Node], _ content: Container.Content) -> Container {
        var container = Container(end: node.next, content: content)
        guard node.kind == .object else { return container }
        forEachName(node, nodes) { name, value in
            guard name.range.count <= 12 else { return true }
            switch ASCII.lowercased(bytes[name.range]) {
            case "logprob", "logprobs", "lemma", "start_offset", "special": container.isLanguage = true
            case "name", "key", "field", "parameter", "variable":
                guard value.kind == .string, value.range.count <= 96 else { return true }
                let meaning = rules.meaning(of: plain(value.range))
                if case .harmless = container.value { container.value = meaning }
            case "kty": container.secretNames = Self.keyMembers
            case "secondarykey": container.secretNames = Self.keyPair
            case "keyname": (container.value, container.secretNames) = (.secret, Self.keyPair)
            default: break
            }
            return true
        }
        return container
    }

    /// Returns whether an object describes a value, as in JSON Schema. This is the case if all its
    /// names are known words.
    private func isDescription(_ node: Node, _ nodes: [Node]) -> Bool {
        var describes = false
        forEachName(node, nodes) { name, _ in
            let text = String(decoding: bytes[name.range.prefix(40)], as: UTF8.self)
            describes = Self.schemaWords.contains(text) || text.hasPrefix("x-") || text.hasPrefix("$")
            return describes
        }
        return describes
    }

    private func forEachName(_ object: Node, _ nodes: [Node], _ body: (Node, Node) -> Bool) {
        var index = object.index + 1
        while index + 1 < object.next, nodes[index].kind == .name {
            guard body(nodes[index], nodes[index + 1]) else { return }
            index = nodes[index + 1].next
        }
    }

    /// The secret members of a JSON Web Key (RFC 7518, section 6).
    private static let keyMembers: Set<String> = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]
    private static let keyPair: Set<String> = ["primarykey", "secondarykey"]
    /// The names in a description: JSON Schema, OpenAPI, forms, and references of Kubernetes.
    static let schemaWords: Set<String> = Set(
        """
        type format description title minLength maxLength pattern writeOnly readOnly nullable example examples default \
        required enum items properties additionalProperties oneOf anyOf allOf not label placeholder deprecated minimum \
        maximum const in location schema optional sensitive computed description_kind hint help rules message order \
        name autocomplete allowEmptyValue style explode content definitions patternProperties minProperties \
        maxProperties minItems maxItems uniqueItems discriminator externalDocs xml scheme bearerFormat flows kind \
        contentEncoding contentMediaType min_length max_length secretName defaultMode path expirationSeconds audience
        """.split(separator: " ").map(String.init))
    /// The names of objects whose members are named after fields.
    private static let labels: Set<String> = [
        "labels", "translations", "i18n", "i", "placeholders", "strings", "captions",
    ]
    private static let messages: Set<String> = [
        "errors", "error", "messages", "violations", "hints", "warnings", "details",
    ]
}

extension TextRedactor {
    /// Returns the nodes in order, or `nil` if the range is not JSON.
    private func nodes(_ range: Range<Int>) -> [Node]? {
        var nodes: [Node] = []
        /// The indices of the arrays and objects that have not been closed.
        var open: [Int] = []
        var index = range.lowerBound
        func append(_ kind: Node.Kind, _ range: Range<Int>) {
            nodes.append(Node(kind: kind, index: nodes.count, range: range, next: nodes.count + 1))
        }
        while index < range.upperBound {
            let byte = bytes[index]
            switch byte {
            case 0x20, 0x0A, 0x0D, 0x09, 0x1E, UInt8(ascii: ","): index += 1
            case UInt8(ascii: "\""):
                let end = JSONLiteral.endOfString(bytes[range], from: index)
                let isClosed = end > index + 1 && bytes[end - 1] == UInt8(ascii: "\"")
                append(.string, index + 1..<max(index + 1, isClosed ? end - 1 : end))
                index = end
            case UInt8(ascii: ":"):
                guard let last = nodes.last, last.kind == .string, let object = open.last,
                    nodes[object].kind == .object, nodes[last.index - 1].kind != .name
                else { return nil }
                nodes[last.index].kind = .name
                index += 1
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                open.append(nodes.count)
                append(byte == UInt8(ascii: "{") ? .object : .array, index..<index + 1)
                index += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                guard let start = open.popLast(), nodes.last?.kind != .name,
                    (nodes[start].kind == .object) == (byte == UInt8(ascii: "}"))
                else { return nil }
                nodes[start].next = nodes.count
                index += 1
            default:
                let start = index
                while index < range.upperBound, !Self.isSpace(bytes[index]), !"\",:{}[]".utf8.contains(bytes[index]) {
                    index += 1
                }
                guard isLiteral(bytes[start..<index], isLast: index == range.upperBound) else { return nil }
                append(.literal, start..<index)
            }
        }
        while let start = open.popLast() { nodes[start].next = nodes.count }
        return nodes
    }

    /// Returns whether bytes are a number or another JSON literal.
    ///
    /// - Parameter isLast: Whether the literal may be truncated.
    private func isLiteral(_ literal: ArraySlice<UInt8>, isLast: Bool) -> Bool {
        if SecretRules.isNumber(literal) { return true }
        return ["true", "false", "null", "NaN", "Infinity", "-Infinity"].contains {
            isLast ? $0.utf8.starts(with: literal) : $0.utf8.elementsEqual(literal)
        }
    }
}
