import WebServiceCore

/// A request for a string.
struct TextRequest: ServiceRequest, Hashable {
    var name = "a"
    typealias Output = String
}

struct OtherRequest: ServiceRequest, Hashable {
    typealias Output = String
}

/// A request that is not hashable and therefore never a duplicate.
struct PlainRequest: ServiceRequest {
    typealias Output = String
}

struct RawText: RawStorableRequest, Hashable {
    var name = "a"
    var classification = DataClassification.default
    typealias Output = String
    var storageIdentifier: String? { name }
    var dataClassification: DataClassification { classification }
}

struct ValueText: ValueStorableRequest, Hashable {
    var name = "a"
    typealias Output = String
    var storageIdentifier: String? { name }
}
