import WebServiceCore
package import WebServiceStorage

/// A request for a string.
package struct TextRequest: ServiceRequest, Hashable {
    package var name: String
    package typealias Output = String

    package init(name: String = "a") { self.name = name }
}

package struct OtherRequest: ServiceRequest, Hashable {
    package typealias Output = String

    package init() {}
}

/// A request that is not hashable and therefore never a duplicate.
package struct PlainRequest: ServiceRequest {
    package typealias Output = String

    package init() {}
}

package struct RawText: RawStorableRequest, Hashable {
    package var name: String
    package var classification: DataClassification
    package typealias Output = String
    package var storageIdentifier: String? { name }
    package var dataClassification: DataClassification { classification }

    package init(name: String = "a", classification: DataClassification = .default) {
        (self.name, self.classification) = (name, classification)
    }
}

package struct ValueText: ValueStorableRequest, Hashable {
    package var name: String
    package typealias Output = String
    package var storageIdentifier: String? { name }

    package init(name: String = "a") { self.name = name }
}
