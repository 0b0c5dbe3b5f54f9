import CCurl
import Foundation
import WebServiceCore

/// The events that a loop waits for: a wake-up signal, and the sockets registered by libcurl or by
/// channels.
///
/// libcurl unregisters the socket of a connection after each response and registers it for the next
/// request. The socket of a connection stays registered with the kernel until it is closed, or
/// until an event occurs while it is not watched.
struct Poller: ~Copyable {
    /// The events of a socket that are watched or have occurred.
    struct Events: OptionSet {
        let rawValue: UInt8
        static let readable = Events(rawValue: 1)
        static let writable = Events(rawValue: 2)
        static let failed = Events(rawValue: 4)
    }

    /// An event that a wait has returned.
    enum Event: Equatable {
        case wakeUp
        /// An event on a socket that is watched.
        case ready(Int32, Events)
        /// An event on a connection that is not watched.
        case unwatched(Int32)
        /// An event of a descriptor that has since been closed.
        case outdated
    }

    private struct Interest {
        /// A number that changes when the descriptor is closed.
        ///
        /// The number distinguishes the events of successive connections that have the same
        /// descriptor.
        var generation: UInt32 = 0
        var registered: Events = []
        /// Whether libcurl or a channel watches the socket.
        var isWatched = false
        /// Whether ``closed(_:)`` is called for the socket.
        ///
        /// `true` for the sockets of connections.
        var isConnection = false
    }

    private var interests: [Interest] = []
    private let wakeUp: Int32

    /// Records that the socket of a connection was opened.
    mutating func opened(_ socket: Int32) {
        update(socket) { $0 = Interest(generation: $0.generation, isConnection: true) }
    }

    /// Unregisters the socket of a connection that is about to be closed.
    mutating func closed(_ socket: Int32) {
        if !interest(socket).registered.isEmpty { deregister(socket) }
        update(socket) { $0 = Interest(generation: $0.generation &+ 1) }
    }

    /// Watches the socket for these events.
    mutating func watch(_ socket: Int32, for events: Events) {
        let known = interest(socket)
        if known.registered != events { register(socket, events, isNew: known.registered.isEmpty) }
        update(socket) {
            $0.registered = events
            $0.isWatched = true
        }
    }

    /// Returns whether libcurl watches the socket for bytes.
    func isReading(_ socket: Int32) -> Bool {
        let known = interest(socket)
        return known.isWatched && known.registered.contains(.readable)
    }

    /// Replaces the file of a descriptor and watches it for the same events.
    mutating func replace(_ socket: Int32, _ action: () -> Void) {
        let known = interest(socket)
        if !known.registered.isEmpty { deregister(socket) }
        action()
        // The new file may still be registered, for example if it was replaced earlier and is restored.
        if !known.registered.isEmpty { deregister(socket) }
        if known.isWatched, !known.registered.isEmpty {
            register(socket, known.registered, isNew: true)
        } else {
            update(socket) { $0.registered = [] }
        }
    }

    /// Stops watching the socket.
    mutating func unwatch(_ socket: Int32) {
        let known = interest(socket)
        if known.isConnection {
            update(socket) { $0.isWatched = false }
        } else {
            if !known.registered.isEmpty { deregister(socket) }
            update(socket) { $0 = Interest(generation: $0.generation &+ 1) }
        }
    }

    /// Classifies an event. A socket that libcurl does not watch is unregistered.
    private mutating func event(_ socket: Int32, _ generation: UInt32, _ events: Events) -> Event {
        let known = interest(socket)
        guard socket != wakeUp else { return .wakeUp }
        guard known.generation == generation else { return .outdated }
        guard !known.isWatched else { return .ready(socket, events) }
        if !known.registered.isEmpty { deregister(socket) }
        update(socket) { $0.registered = [] }
        return .unwatched(socket)
    }

    private func interest(_ socket: Int32) -> Interest {
        socket >= 0 && Int(socket) < interests.count ? interests[Int(socket)] : Interest()
    }

    private mutating func update(_ socket: Int32, _ change: (inout Interest) -> Void) {
        guard socket >= 0 else { return }
        while interests.count <= Int(socket) { interests.append(Interest()) }
        change(&interests[Int(socket)])
    }

    #if os(Linux)
    /// Whether a running wait includes sockets that are registered during the wait.
    static let updatesWaits = true

    /// The events of a wait. The wait uses no state of the poller, so another thread may use the
    /// poller during a wait.
    struct Wait: ~Copyable {
        private let descriptor: Int32
        fileprivate var ready = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: 128)

        fileprivate init(_ descriptor: Int32) {
            self.descriptor = descriptor
        }

        deinit {
            ready.deallocate()
        }

        /// Waits for events or until the timeout has elapsed; a timeout of -1 never elapses.
        ///
        /// - Returns: The number of events; ``Poller/event(_:of:)`` returns each of them.
        mutating func run(milliseconds: Int32) -> Int {
            // After EINTR, the loop waits again.
            Int(max(0, epoll_wait(descriptor, ready.baseAddress, Int32(ready.count), milliseconds)))
        }
    }

    private let descriptor: Int32

    /// - Parameter wakeUp: A descriptor that wakes the loop when it becomes readable.
    init(wakeUp: Int32) throws {
        self.wakeUp = wakeUp
        descriptor = try system("epoll_create1", orThrow: .curl) { epoll_create1(Int32(EPOLL_CLOEXEC)) }
        register(wakeUp, .readable, isNew: true)
    }

    deinit {
        close(descriptor)
    }

    private func register(_ socket: Int32, _ events: Events, isNew: Bool) {
        var event = epoll_event()
        if events.contains(.readable) { event.events |= EPOLLIN.rawValue }
        if events.contains(.writable) { event.events |= EPOLLOUT.rawValue }
        event.data.u64 = UInt64(interest(socket).generation) << 32 | UInt64(UInt32(bitPattern: socket))
        if epoll_ctl(descriptor, isNew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event) == 0 { return }
        // The descriptor may have been closed and reused for another file without notice.
        _ = epoll_ctl(descriptor, isNew ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event)
    }

    private func deregister(_ socket: Int32) {
        var event = epoll_event()
        _ = epoll_ctl(descriptor, EPOLL_CTL_DEL, socket, &event)
    }

    /// Creates a wait, which the poller must outlive.
    func makeWait() -> Wait { Wait(descriptor) }

    /// Prepares a wait for the registered sockets.
    func prepare(_ wait: inout Wait) {
        guard wait.ready.count <= interests.count else { return }
        wait.ready.deallocate()
        wait.ready = .allocate(capacity: interests.count * 2)
    }

    /// Returns an event of a wait.
    mutating func event(_ index: Int, of wait: borrowing Wait) -> Event {
        let event = wait.ready[index]
        var events: Events = []
        if event.events & (EPOLLIN.rawValue | EPOLLHUP.rawValue) != 0 { events.insert(.readable) }
        if event.events & EPOLLOUT.rawValue != 0 { events.insert(.writable) }
        if event.events & EPOLLERR.rawValue != 0 { events.insert(.failed) }
        return self.event(Int32(truncatingIfNeeded: event.data.u64), UInt32(event.data.u64 >> 32), events)
    }
    #else
    // poll(2), for systems without epoll.
    static let updatesWaits = false

    struct Wait: ~Copyable {
        fileprivate var descriptors: [pollfd] = []
        fileprivate var generations: [UInt32] = []
        fileprivate var ready: [(pollfd: pollfd, generation: UInt32)] = []

        mutating func run(milliseconds: Int32) -> Int {
            let count = poll(&descriptors, nfds_t(descriptors.count), milliseconds)
            ready = count > 0 ? Array(zip(descriptors, generations)).filter { $0.0.revents != 0 } : []
            return ready.count
        }
    }

    private var registered: [Int32: Events] = [:]

    init(wakeUp: Int32) throws {
        self.wakeUp = wakeUp
    }

    private mutating func register(_ socket: Int32, _ events: Events, isNew: Bool) {
        registered[socket] = events
    }

    private mutating func deregister(_ socket: Int32) {
        registered[socket] = nil
    }

    func makeWait() -> Wait { Wait() }

    func prepare(_ wait: inout Wait) {
        wait.descriptors = [pollfd(fd: wakeUp, events: Int16(POLLIN), revents: 0)]
        wait.generations = [0]
        for (socket, events) in registered {
            let wanted = (events.contains(.readable) ? POLLIN : 0) | (events.contains(.writable) ? POLLOUT : 0)
            wait.descriptors.append(pollfd(fd: socket, events: Int16(wanted), revents: 0))
            wait.generations.append(interest(socket).generation)
        }
    }

    mutating func event(_ index: Int, of wait: borrowing Wait) -> Event {
        let (event, generation) = wait.ready[index]
        var events: Events = []
        if Int32(event.revents) & (POLLIN | POLLHUP) != 0 { events.insert(.readable) }
        if Int32(event.revents) & POLLOUT != 0 { events.insert(.writable) }
        if Int32(event.revents) & (POLLERR | POLLNVAL) != 0 { events.insert(.failed) }
        return self.event(event.fd, generation, events)
    }
    #endif
}
