import Dispatch
import Foundation

/// A thread that its owner must either join or detach, by one call to ``join()`` or ``detach()``.
package struct JoinableThread: @unchecked Sendable {  // it contains only an identifier that any thread may use
    private let identifier: pthread_t

    /// Starts a thread.
    ///
    /// - Parameter stackSize: The size of the stack in bytes. Defaults to 1 MiB.
    /// - Throws: ``SystemFailure`` if the system cannot create a thread; `body` is then not called.
    package init(
        stackSize: Int = 1 << 20, _ body: @escaping @Sendable () -> Void
    ) throws(SystemFailure) {
        let start = Unmanaged.passRetained(Start(body))
        #if canImport(Darwin)
        var thread: pthread_t?
        #else
        var thread = pthread_t()
        #endif
        let status = withUnsafeTemporaryAllocation(of: pthread_attr_t.self, capacity: 1) { attributes in
            guard let attributes = attributes.baseAddress, pthread_attr_init(attributes) == 0 else { return ENOMEM }
            defer { pthread_attr_destroy(attributes) }
            pthread_attr_setstacksize(attributes, stackSize)
            return pthread_create(&thread, attributes, Start.run, start.toOpaque())
        }
        guard status == 0, let started = thread as pthread_t? else {
            start.release()
            throw SystemFailure(call: "pthread_create", number: status)
        }
        identifier = started
    }

    /// Waits until the thread has ended. The thread itself must not call this method.
    package func join() {
        pthread_join(identifier, nil)
    }

    /// Releases the thread, which continues to run.
    package func detach() {
        pthread_detach(identifier)
    }

    /// Whether this is the current thread.
    package var isCurrent: Bool {
        pthread_equal(identifier, pthread_self()) != 0
    }
}

/// The argument of a new thread.
private final class Start {
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
    }

    #if canImport(Darwin)
    static let run: @convention(c) (UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? = { call($0) }
    #else
    static let run: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { $0.flatMap(call) }
    #endif

    private static func call(_ pointer: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        Unmanaged<Start>.fromOpaque(pointer).takeRetainedValue().body()
        return nil
    }
}

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

/// A signal that threads block on. Code that must not block a thread awaits ``Once`` instead.
package struct ThreadSignal: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    package init() {}

    /// Wakes one waiting thread, or lets the next wait return immediately.
    package func signal() {
        semaphore.signal()
    }

    package func wait() {
        semaphore.wait()
    }

    /// Waits for a signal, for at most the given number of milliseconds.
    ///
    /// - Returns: Whether there was a signal within the limit.
    package func wait(milliseconds: Int) -> Bool {
        semaphore.wait(timeout: .now() + .milliseconds(milliseconds)) == .success
    }
}
