import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// A random number generator with a deterministic sequence.
struct CountingGenerator: RandomNumberGenerator {
    private var state: UInt64 = 0

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state
    }
}

extension MultipartFormData {
    /// Returns a form whose boundary is the same in every run.
    static func make(_ change: (inout MultipartFormData) throws -> Void) rethrows -> MultipartFormData {
        var generator = CountingGenerator()
        var form = MultipartFormData(using: &generator)
        try change(&form)
        return form
    }

    /// A POST request with this form as its body.
    var request: Request { Request.make(.POST) { $0.multipart = self } }

    /// The whole body, including the contents of its files.
    func body() throws -> Data {
        let encoded = try request.encode()
        return try encoded.body ?? #require(encoded.bodySource).read(in: 64 << 10)
    }
}

extension BodySource {
    /// All bytes, read in chunks of the given size.
    func read(in size: Int) throws -> Data {
        let reader = BodyReader(self)
        var body = Data()
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 1)
        defer { room.deallocate() }
        while true {
            let count = try reader.read(into: room)
            #expect(count == min(size, self.count - body.count), "the buffer is filled while bytes remain")
            if count == 0 { return body }
            body += room.prefix(count)
            #expect(reader.offset == body.count)
        }
    }
}
