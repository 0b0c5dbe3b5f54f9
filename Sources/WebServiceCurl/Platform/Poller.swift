import CCurl
import WebServiceCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// What a loop waits for: a wake-up, and the sockets that libcurl names.
///
/// libcurl lets go of a connection's socket after each answer and takes it up again for the next request. The kernel is not told: a socket of a connection
/// stays registered until it is closed, or until something happens on it while libcurl does not look.
struct Poller: ~Copyable {
    /// What a socket is ready for, and what libcurl wants to know of it.
    struct Events: OptionSet {
        let rawValue: UInt8
        static let readable = Events(rawValue: 1)
        static let writable = Events(rawValue: 2)
        static let failed = Events(rawValue: 4)
    }

    /// One of the events of a wait.
    enum Event: Equatable {
        case wakeUp
        /// An event that libcurl waits for.
        case ready(Int32, Events)
        /// Something happened on a connection that libcurl does not look at.
        case stray(Int32)
        /// The descriptor has been closed since.
        case outdated
    }

    private struct Interest {
        /// How often the descriptor was closed, which tells an event of a connection from one of the next with the same descriptor.
        var generation: UInt32 = 0
        var registered: Events = []
        /// Whether libcurl looks at it.
        var isWatched = false
        /// Whether it belongs to a connection, so that we hear when it is closed.
        var isConnection = false
    }

    private var interests: [Interest] = []
    private let wakeUp: Int32

    /// A socket for a connection was opened.
    mutating func opened(_ socket: Int32) {
        update(socket) { $0 = Interest(generation: $0.generation, isConnection: true) }
    }

    /// A socket of a connection is about to be closed.
    mutating func closed(_ socket: Int32) {
        if !interest(socket).registered.isEmpty { deregister(socket) }
        update(socket) { $0 = Interest(generation: $0.generation &+ 1) }
    }

    /// libcurl wants to know of these events.
    mutating func watch(_ socket: Int32, for events: Events) {
        let known = interest(socket)
        if known.registered != events { register(socket, events, isNew: known.registered.isEmpty) }
        update(socket) {
            $0.registered = events
            $0.isWatched = true
        }
    }

    /// libcurl does not look at the socket any more.
    mutating func unwatch(_ socket: Int32) {
        let known = interest(socket)
        if known.isConnection {
            update(socket) { $0.isWatched = false }
        } else {
            if !known.registered.isEmpty { deregister(socket) }
            update(socket) { $0 = Interest(generation: $0.generation &+ 1) }
        }
    }

    /// Sorts an event; the socket is let go of when libcurl does not look at it.
    private mutating func event(_ socket: Int32, _ generation: UInt32, _ events: Events) -> Event {
        let known = interest(socket)
        guard socket != wakeUp else { return .wakeUp }
        guard known.generation == generation else { return .outdated }
        guard !known.isWatched else { return .ready(socket, events) }
        if !known.registered.isEmpty { deregister(socket) }
        update(socket) { $0.registered = [] }
        return .stray(socket)
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
    private let descriptor: Int32
    private var ready = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: 128)

    /// - Parameter wakeUp: A descriptor that is readable when the loop is to wake up; ``wait(milliseconds:_:)`` only returns for it.
    init(wakeUp: Int32) throws {
        self.wakeUp = wakeUp
        descriptor = try SystemCall.check("epoll_create1", epoll_create1(Int32(EPOLL_CLOEXEC)), orThrow: .curl)
        register(wakeUp, .readable, isNew: true)
    }

    deinit {
        ready.deallocate()
        close(descriptor)
    }

    private func register(_ socket: Int32, _ events: Events, isNew: Bool) {
        var event = epoll_event()
        if events.contains(.readable) { event.events |= EPOLLIN.rawValue }
        if events.contains(.writable) { event.events |= EPOLLOUT.rawValue }
        event.data.u64 = UInt64(interest(socket).generation) << 32 | UInt64(UInt32(bitPattern: socket))
        if epoll_ctl(descriptor, isNew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event) == 0 { return }
        // A number may have passed from one file to another without our hearing of it.
        _ = epoll_ctl(descriptor, isNew ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event)
    }

    private func deregister(_ socket: Int32) {
        var event = epoll_event()
        _ = epoll_ctl(descriptor, EPOLL_CTL_DEL, socket, &event)
    }

    /// Waits for events, or for the time to pass; -1 is for ever.
    ///
    /// - Returns: How many sockets have events, all of them; ``event(_:)`` tells them one by one.
    mutating func wait(milliseconds: Int32) -> Int {
        if ready.count <= interests.count {
            ready.deallocate()
            ready = .allocate(capacity: interests.count * 2)
        }
        return Int(max(0, epoll_wait(descriptor, ready.baseAddress, Int32(ready.count), milliseconds)))  // after EINTR the loop comes back
    }

    /// One of the events of the last wait.
    mutating func event(_ index: Int) -> Event {
        let event = ready[index]
        var events: Events = []
        if event.events & (EPOLLIN.rawValue | EPOLLHUP.rawValue) != 0 { events.insert(.readable) }
        if event.events & EPOLLOUT.rawValue != 0 { events.insert(.writable) }
        if event.events & EPOLLERR.rawValue != 0 { events.insert(.failed) }
        return self.event(Int32(truncatingIfNeeded: event.data.u64), UInt32(event.data.u64 >> 32), events)
    }
    #else
    // poll(2): the same for systems without epoll.
    private var ready: [(pollfd: pollfd, generation: UInt32)] = []
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

    mutating func wait(milliseconds: Int32) -> Int {
        var descriptors = [pollfd(fd: wakeUp, events: Int16(POLLIN), revents: 0)]
        for (socket, events) in registered {
            let wanted = (events.contains(.readable) ? POLLIN : 0) | (events.contains(.writable) ? POLLOUT : 0)
            descriptors.append(pollfd(fd: socket, events: Int16(wanted), revents: 0))
        }
        guard poll(&descriptors, nfds_t(descriptors.count), milliseconds) > 0 else { return 0 }
        ready = descriptors.filter { $0.revents != 0 }.map { ($0, interest($0.fd).generation) }
        return ready.count
    }

    mutating func event(_ index: Int) -> Event {
        let (event, generation) = ready[index]
        var events: Events = []
        if Int32(event.revents) & (POLLIN | POLLHUP) != 0 { events.insert(.readable) }
        if Int32(event.revents) & POLLOUT != 0 { events.insert(.writable) }
        if Int32(event.revents) & (POLLERR | POLLNVAL) != 0 { events.insert(.failed) }
        return self.event(event.fd, generation, events)
    }
    #endif
}
