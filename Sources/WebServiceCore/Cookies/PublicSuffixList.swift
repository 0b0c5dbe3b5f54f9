import Foundation

/// The domains below which unrelated parties register names, such as `co.uk` (publicsuffix.org).
///
/// The system's libpsl provides the list and is loaded when the list is first used. Neither the
/// library nor its headers are required.
struct PublicSuffixList: Sendable {
    private typealias Load = @convention(c) (_ file: UnsafePointer<CChar>?) -> OpaquePointer?
    private typealias Check =
        @Sendable @convention(c) (_ list: OpaquePointer?, _ domain: UnsafePointer<CChar>) -> CInt

    /// The address of the list, which does not change and is never released.
    private let address: Int
    private let check: Check

    #if canImport(Darwin)
    private static let library = "libpsl.5.dylib"
    #else
    private static let library = "libpsl.so.5"
    #endif

    /// The newer of the system's list file and the library's built-in list; `nil` if the library is
    /// missing or has no list.
    static let system = PublicSuffixList(library)

    /// - Returns: `nil` if the library or one of its functions is missing, or if it has no list.
    init?(_ library: String) {
        guard let handle = dlopen(library, RTLD_NOW | RTLD_LOCAL), let load = dlsym(handle, "psl_latest"),
            let check = dlsym(handle, "psl_is_public_suffix"),
            let list = unsafeBitCast(load, to: Load.self)(nil)
        else { return nil }
        address = Int(bitPattern: list)
        self.check = unsafeBitCast(check, to: Check.self)
    }

    /// Returns whether a domain is a public suffix. A trailing dot is ignored.
    ///
    /// - Parameter domain: The domain, in lower-case ASCII.
    func contains(_ domain: some StringProtocol) -> Bool {
        check(OpaquePointer(bitPattern: address), domain.hasSuffix(".") ? String(domain.dropLast()) : String(domain))
            != 0
    }
}
