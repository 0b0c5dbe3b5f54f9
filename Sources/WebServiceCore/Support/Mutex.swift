package import Synchronization

#if WEBSERVICE_THREAD_SANITIZER && canImport(Glibc)
import Foundation

/// The lock of all modules in builds for the thread sanitizer.
///
/// The sanitizer does not support `Synchronization.Mutex` on Linux and would report every access
/// that such a mutex guards. It supports POSIX mutexes.
///
/// @unchecked: the value is accessed only between lock and unlock.
package struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)
    private let count = UnsafeMutablePointer<Int>.allocate(capacity: 1)

    package init(_ value: consuming sending Value) {
        lock.initialize(to: pthread_mutex_t())
        pthread_mutex_init(lock, nil)
        self.value.initialize(to: value)
        count.initialize(to: 0)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
        value.deinitialize(count: 1)
        value.deallocate()
        count.deallocate()
    }

    /// The number of times that the lock was taken. A test limits this number.
    package var lockCount: Int {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return count.pointee
    }

    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        count.pointee += 1
        return try body(&value.pointee)
    }

    package borrowing func withLockIfAvailable<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result? {
        guard pthread_mutex_trylock(lock) == 0 else { return nil }
        defer { pthread_mutex_unlock(lock) }
        count.pointee += 1
        return try body(&value.pointee)
    }
}

#else

/// The lock of all modules, except for most locks of `WebServiceCurl`: a wrapper of
/// `Synchronization.Mutex`, so that builds for the thread sanitizer can replace it.
package struct Mutex<Value: ~Copyable>: ~Copyable, Sendable {
    @usableFromInline let base: Synchronization.Mutex<Value>

    @inlinable package init(_ value: consuming sending Value) {
        base = Synchronization.Mutex(value)
    }

    @inlinable package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try base.withLock(body)
    }
}

#endif
