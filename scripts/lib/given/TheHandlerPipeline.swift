import WebServiceCore

enum Feature: RequestTagKey {
    static let defaultValue = "unknown"
}
