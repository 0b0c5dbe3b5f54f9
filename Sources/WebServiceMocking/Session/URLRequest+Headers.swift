import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

extension URLRequest {
    /// The header fields, sorted by name, for comparisons in tests.
    public var headers: Headers { Headers(allHTTPHeaderFields ?? [:]) }
}
