import Foundation

/// A failed system call.
package struct SystemFailure: Error {
    package let call: String
    /// The value of `errno` after the call.
    package let number: Int32

    package init(call: String, number: Int32) {
        self.call = call
        self.number = number
    }

    /// A file that ended before its expected length.
    static var shortRead: SystemFailure { SystemFailure(call: "read", number: EIO) }

    /// A Boolean value that indicates whether a file exceeds the available memory.
    package var isTooLong: Bool { call == "malloc" }

    /// A Boolean value that indicates whether the user lacks permission.
    package var isRefused: Bool { number == EACCES || number == EPERM }

    var description: String { "\(call): \(String(cString: strerror(number)))" }
}

/// Returns the result of a call, which is repeated if a signal interrupts it.
@discardableResult
package func system<Result: FixedWidthInteger>(_ name: String, _ call: () -> Result) throws(SystemFailure) -> Result {
    while true {
        let result = call()
        guard result == -1 else { return result }
        let number = errno
        guard number == EINTR else { throw SystemFailure(call: name, number: number) }
    }
}
