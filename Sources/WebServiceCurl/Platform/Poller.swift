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

    private struct Interest {
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
        update(socket) { $0 = Interest(isConnection: true) }
    }

    /// A socket of a connection is about to be closed.
    mutating func closed(_ socket: Int32) {
        if !interest(socket).registered.isEmpty { deregister(socket) }
        update(socket) { $0 = Interest() }
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
            update(socket) { $0 = Interest() }
        }
    }

    /// Whether an event is one that libcurl wants to hear of; the socket is let go of when not.
    private mutating func accepts(_ socket: Int32) -> Bool {
        guard !interest(socket).isWatched else { return true }
        if !interest(socket).registered.isEmpty { deregister(socket) }
        update(socket) { $0.registered = [] }
        return false
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
    private let ready = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: 128)

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
        event.data.fd = socket
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
    /// - Parameter body: Called for each socket with an event; it may call the other methods of the poller's owner.
    /// - Returns: How many sockets have events; ``event(_:)`` tells them one by one.
    func wait(milliseconds: Int32) -> Int {
        Int(max(0, epoll_wait(descriptor, ready.baseAddress, Int32(ready.count), milliseconds)))  // after EINTR the loop comes back
    }

    /// One of the events of the last wait; `nil` where it is not for libcurl, or not any more.
    mutating func event(_ index: Int) -> (socket: Int32, events: Events)? {
        let event = ready[index]
        let socket = event.data.fd
        guard socket != wakeUp, accepts(socket) else { return nil }
        var events: Events = []
        if event.events & (EPOLLIN.rawValue | EPOLLHUP.rawValue) != 0 { events.insert(.readable) }
        if event.events & EPOLLOUT.rawValue != 0 { events.insert(.writable) }
        if event.events & EPOLLERR.rawValue != 0 { events.insert(.failed) }
        return (socket, events)
    }
    #else
    // poll(2): the same for systems without epoll.
    private var ready: [pollfd] = []
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
        ready = descriptors.filter { $0.revents != 0 }
        return ready.count
    }

    mutating func event(_ index: Int) -> (socket: Int32, events: Events)? {
        let event = ready[index]
        guard event.fd != wakeUp, accepts(event.fd) else { return nil }
        var events: Events = []
        if Int32(event.revents) & (POLLIN | POLLHUP) != 0 { events.insert(.readable) }
        if Int32(event.revents) & POLLOUT != 0 { events.insert(.writable) }
        if Int32(event.revents) & (POLLERR | POLLNVAL) != 0 { events.insert(.failed) }
        return (event.fd, events)
    }
    #endif
}
