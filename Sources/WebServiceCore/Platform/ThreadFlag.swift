#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A flag of the calling thread, initially not set. Each instance exists until the process ends.
package struct ThreadFlag: Sendable {
    private let key: pthread_key_t

    package init() {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        self.key = key
    }

    package var isSet: Bool {
        get { pointer != nil }
        nonmutating set { pointer = newValue ? UnsafeRawPointer(bitPattern: 1) : nil }
    }

    /// The pointer stored for the calling thread; `nil` if the flag is not set.
    package var pointer: UnsafeRawPointer? {
        get { UnsafeRawPointer(pthread_getspecific(key)) }
        nonmutating set { pthread_setspecific(key, newValue) }
    }
}
