import Foundation

extension SystemFailure {
    /// Returns an error with this cause. Its underlying error is a `POSIXError`.
    package func error(_ code: WebServiceError.Code, _ complaint: String? = nil) -> WebServiceError {
        WebServiceError(
            code, complaint.map { "\($0): \(description)" } ?? description,
            underlying: POSIXError(POSIXErrorCode(rawValue: number) ?? .EIO))
    }
}

/// Returns the result of a system call; see ``system(_:_:)``.
///
/// - Throws: ``WebServiceError`` with the given code.
@discardableResult
package func system<Result: FixedWidthInteger>(
    _ name: String, orThrow code: WebServiceError.Code, _ call: () -> Result
) throws(WebServiceError) -> Result {
    do throws(SystemFailure) { return try system(name, call) } catch { throw error.error(code) }
}

extension WakeUp {
    /// - Throws: ``WebServiceError`` with the given code.
    package convenience init(orThrow code: WebServiceError.Code) throws(WebServiceError) {
        do throws(SystemFailure) { try self.init() } catch { throw error.error(code) }
    }
}

extension JoinableThread {
    /// Starts a thread; see ``init(_:)``.
    ///
    /// - Throws: ``WebServiceError`` with the given code.
    package init(
        orThrow code: WebServiceError.Code, stackSize: Int = 1 << 20, _ body: @escaping @Sendable () -> Void
    ) throws(WebServiceError) {
        do throws(SystemFailure) { try self.init(stackSize: stackSize, body) } catch { throw error.error(code) }
    }
}
