import Foundation

/// The functions of the system's zlib, loaded when they are first used.
package struct Zlib: Sendable {
    /// The structure `z_stream` of zlib.
    package struct Stream {
        package var input: UnsafePointer<UInt8>?
        package var inputCount: UInt32 = 0
        var totalInput: CUnsignedLong = 0
        package var output: UnsafeMutablePointer<UInt8>?
        package var outputCount: UInt32 = 0
        var totalOutput: CUnsignedLong = 0
        var message: UnsafePointer<CChar>?
        var state: UnsafeMutableRawPointer?
        var allocate: UnsafeRawPointer?
        var release: UnsafeRawPointer?
        var context: UnsafeMutableRawPointer?
        /// The position of the inflater. Bit 7 indicates the end of a block.
        package var dataType: CInt = 0
        var checksum: CUnsignedLong = 0
        var reserved: CUnsignedLong = 0

        package init() {}
    }

    package typealias Begin =
        @Sendable @convention(c) (
            _ stream: UnsafeMutableRawPointer, _ level: CInt, _ method: CInt, _ windowBits: CInt, _ memoryLevel: CInt,
            _ strategy: CInt, _ version: UnsafePointer<CChar>, _ streamSize: CInt
        ) -> CInt
    package typealias Step = @Sendable @convention(c) (_ stream: UnsafeMutableRawPointer, _ flush: CInt) -> CInt
    package typealias End = @Sendable @convention(c) (_ stream: UnsafeMutableRawPointer) -> CInt
    package typealias Reset = End

    package typealias BeginInflating =
        @Sendable @convention(c) (
            _ stream: UnsafeMutableRawPointer, _ windowBits: CInt, _ version: UnsafePointer<CChar>, _ streamSize: CInt
        ) -> CInt

    package let begin: Begin
    package let step: Step
    package let reset: Reset
    package let end: End
    package let beginInflating: BeginInflating
    package let inflate: Step
    package let resetInflating: Reset
    package let endInflating: End

    #if canImport(Darwin)
    private static let library = "/usr/lib/libz.dylib"
    #else
    private static let library = "libz.so.1"
    #endif

    /// The library of the system; `nil` if it is missing.
    package static let system = Zlib(library)

    /// - Returns: `nil` if the library or one of its functions is missing.
    init?(_ library: String) {
        guard let handle = dlopen(library, RTLD_NOW | RTLD_LOCAL), let begin = dlsym(handle, "deflateInit2_"),
            let step = dlsym(handle, "deflate"), let reset = dlsym(handle, "deflateReset"),
            let end = dlsym(handle, "deflateEnd"), let beginInflating = dlsym(handle, "inflateInit2_"),
            let inflate = dlsym(handle, "inflate"), let resetInflating = dlsym(handle, "inflateReset"),
            let endInflating = dlsym(handle, "inflateEnd")
        else { return nil }
        self.begin = unsafeBitCast(begin, to: Begin.self)
        self.step = unsafeBitCast(step, to: Step.self)
        self.reset = unsafeBitCast(reset, to: Reset.self)
        self.end = unsafeBitCast(end, to: End.self)
        self.beginInflating = unsafeBitCast(beginInflating, to: BeginInflating.self)
        self.inflate = unsafeBitCast(inflate, to: Step.self)
        self.resetInflating = unsafeBitCast(resetInflating, to: Reset.self)
        self.endInflating = unsafeBitCast(endInflating, to: End.self)
    }
}
