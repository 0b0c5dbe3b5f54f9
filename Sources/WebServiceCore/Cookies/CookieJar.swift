public import Foundation

/// The cookies of one service, in memory, as RFC 6265 defines them for user agents (section 5).
///
/// ```swift
/// let jar = CookieJar()
/// jar.store(["sid=1; Path=/; Secure"], from: url)
/// jar.header(for: url)  // "sid=1"
/// ```
/// Guarantees:
/// - A cookie is sent to the host that set it and, if it has a `Domain` attribute, to the
///   subdomains of that domain. In this attribute, a host can name itself and those of its parent
///   domains that contain a dot; an IP address can name only itself. If the library libpsl is
///   available at run time (``knowsPublicSuffixes``), a public suffix such as `co.uk` is accepted
///   only from the host of that name, as a host-only cookie (RFC 6265, section 5.3, step 5). Hosts
///   are compared in the form in which they are sent: a `Domain` with non-ASCII characters matches
///   no host.
/// - A `Secure` cookie is accepted and sent only over https, and no cookie set over http replaces
///   or shadows it. The prefixes `__Secure-` and `__Host-` are enforced.
/// - Apart from the rules for `Secure`, cookies are isolated neither by scheme nor by port (RFC
///   6265, section 8.5): `http://h:1` and `https://h:2` share them. `SameSite` is ignored, because
///   there is no site that initiates requests.
/// - A cookie without a name, with a control character, or with more than 4,096 bytes of name and
///   value is ignored. The last 180 cookies of each response are stored. If there are more than 180
///   cookies for one domain, or 3,000 in total, an expired cookie is removed first, and otherwise
///   the least recently used one (RFC 6265, section 6.1). If the total is exceeded and the site
///   with the most cookies has more than 50, the cookie is removed from that site, so that no site
///   can evict the cookies of others by setting many cookies. A site consists of the hosts that
///   share their last two labels or, if the public suffixes are known, a public suffix and the
///   label before it.
///
/// All members may be used from any thread. Nothing is written to disk, except by
/// ``write(to:includingSessionCookies:)``, and no description contains a value.
public final class CookieJar: Sendable {
    /// The maximum number of cookies of one domain.
    static let maximumPerDomain = 180
    /// The maximum number of cookies in total.
    static let maximumCount = 3_000
    /// If the jar exceeds ``maximumCount`` and the site with the most cookies has more than this
    /// number of cookies, a cookie of that site is removed (RFC 6265, section 6.1).
    static let fairCount = 50

    private let state = Mutex(State())
    /// The clock for expiry; `nil` for that of the service that sends the request.
    private let clock: TaskClock?
    private let suffixes: PublicSuffixList?

    /// Whether jars reject cookies for public suffixes.
    ///
    /// The value is `true` if the library libpsl and its list are available on the system.
    public static var knowsPublicSuffixes: Bool { PublicSuffixList.system != nil }

    /// Creates a jar without cookies.
    public convenience init() {
        self.init(timekeeper: nil)
    }

    /// - Parameter timekeeper: The clock for expiry; `nil` for the service's clock in a request,
    ///   and for the system clock elsewhere.
    package convenience init(timekeeper: (any Timekeeper)?) {
        self.init(timekeeper: timekeeper, suffixes: .system)
    }

    init(timekeeper: (any Timekeeper)?, suffixes: PublicSuffixList?) {
        clock = timekeeper.map { TaskClock($0) }
        self.suffixes = suffixes
    }

    func date(_ serviceClock: TaskClock = .system) -> Date { (clock ?? serviceClock).date }

    /// The cookies that have not expired, oldest first.
    public var cookies: [Cookie] {
        let now = date()
        let all = state.withLock { $0.all }
        return all.filter { !$0.cookie.isExpired(at: now) }.sorted { $0.created < $1.created }.map(\.cookie)
    }

    /// Returns the value of the `Cookie` field for a request (RFC 6265, section 5.4).
    ///
    /// Cookies with longer paths come first. Among paths of equal length, older cookies come first.
    /// A cookie that would make the value exceed ``Request/maximumHeaderValueLength`` is omitted.
    ///
    /// - Returns: `nil` if no cookie matches, or if the URL is not http or https or has user
    ///   information.
    public func header(for url: URL) -> String? {
        header(for: url, .system)
    }

    /// - Parameter serviceClock: The clock of the service that sends the request.
    func header(for url: URL, _ serviceClock: TaskClock) -> String? {
        guard state.withLock({ $0.count > 0 }), let location = Cookie.Location(url) else { return nil }
        let now = date(serviceClock)
        let found = state.withLock { $0.use(for: location, at: now) }
        var value = ""
        for cookie in found.sorted(by: {
            ($1.cookie.path.utf8.count, $0.created) < ($0.cookie.path.utf8.count, $1.created)
        }).map(\.cookie) {
            let pair = "\(value.isEmpty ? "" : "; ")\(cookie.name)=\(cookie.value)"
            if value.utf8.count + pair.utf8.count <= Request.maximumHeaderValueLength { value += pair }
        }
        return value.isEmpty ? nil : value
    }

    /// Stores the cookies of a response (RFC 6265, sections 5.2 and 5.3).
    ///
    /// Cookies that violate the rules are ignored. A cookie replaces the stored one with the same
    /// name, domain and path and takes the position of the stored one in the order; an expired
    /// cookie removes the stored one.
    ///
    /// - Parameters:
    ///   - setCookieFields: The values of the `Set-Cookie` fields.
    ///   - joined: Whether a value may contain several cookies that Foundation has joined with
    ///     `", "`. If so, a cookie's value ends before a comma that is followed by a space, a name
    ///     and `=`. The rest may have been injected through the value, so only the first cookie of
    ///     a field may have the prefix `__Secure-` or `__Host-`. If `false`, each value is one
    ///     cookie. Defaults to `true`.
    ///   - url: The URL of the response; for a redirect, the URL that responded with the redirect.
    ///     A URL that is not http or https sets no cookie.
    public func store(_ setCookieFields: [String], joined: Bool = true, from url: URL) {
        store(setCookieFields, joined: joined, from: url, .system)
    }

    /// - Parameter serviceClock: The clock of the service that received the response.
    func store(_ setCookieFields: [String], joined: Bool, from url: URL, _ serviceClock: TaskClock) {
        guard !setCookieFields.isEmpty, let location = Cookie.Location(url) else { return }
        let now = date(serviceClock)
        let fields = joined ? setCookieFields.flatMap(Cookie.split) : setCookieFields.map { Array($0.utf8)[...] }
        let cookies = fields.compactMap { Cookie($0, from: location, at: now, suffixes) }.suffix(Self.maximumPerDomain)
        state.withLock { state in
            let secure = location.isSecure ? [:] : state.secure(at: now)
            for cookie in cookies where !(secure[cookie.name]?.contains(where: cookie.overlaps) ?? false) {
                state.store(cookie, at: now)
            }
            state.removeExcess(at: now, suffixes)
        }
    }

    /// Adds a cookie to the jar.
    ///
    /// The cookie replaces the stored one with the same name, domain and path and takes the
    /// position of the stored one in the order. An expired cookie removes the stored one. The
    /// limits of the jar apply.
    public func add(_ cookie: Cookie) {
        let now = date()
        state.withLock { state in
            state.store(cookie, at: now)
            state.removeExcess(at: now, suffixes)
        }
    }

    /// Removes the cookie with the same name, domain and path, if there is one.
    public func remove(_ cookie: Cookie) {
        state.withLock { $0.remove(cookie) }
    }

    /// Removes all cookies from the jar.
    public func removeAll() {
        state.withLock { $0 = State(isClosed: $0.isClosed) }
    }

    /// Removes all cookies, and ignores those that are added later.
    package func close() {
        state.withLock { $0 = State(isClosed: true) }
    }
}

extension CookieJar: RedactedReflectable {
    /// The number of cookies that have not expired.
    public var description: String { "CookieJar(\(cookies.count))" }
}

private struct Stored {
    var cookie: Cookie
    /// The position in the order of creation, retained when the cookie is replaced. The position is
    /// a number, because dates may be equal or not monotonic.
    let created: UInt64
    var used: UInt64
}

private struct State {
    private var byDomain: [String: [Stored]] = [:]
    private(set) var count = 0
    private var ticks: UInt64 = 0
    let isClosed: Bool

    init(isClosed: Bool = false) { self.isClosed = isClosed }

    var all: [Stored] { byDomain.values.flatMap(\.self) }

    /// Returns the cookies for a request and marks them as used.
    mutating func use(for location: Cookie.Location, at now: Date) -> [Stored] {
        ticks += 1
        var found: [Stored] = []
        for domain in location.domains {
            for (index, stored) in (byDomain[domain] ?? []).enumerated()
            where stored.cookie.isSent(to: location) && !stored.cookie.isExpired(at: now) {
                byDomain[domain]?[index].used = ticks
                found.append(stored)
            }
        }
        return found
    }

    /// Returns the `Secure` cookies that have not expired, grouped by name.
    func secure(at now: Date) -> [String: [Cookie]] {
        Dictionary(grouping: all.map(\.cookie).filter { $0.isSecure && !$0.isExpired(at: now) }, by: \.name)
    }

    mutating func store(_ cookie: Cookie, at now: Date) {
        guard !isClosed else { return }
        ticks += 1
        let place = byDomain[cookie.domain]?.firstIndex { cookie.replaces($0.cookie) }
        if cookie.isExpired(at: now) {
            remove(cookie)
        } else if let place {
            byDomain[cookie.domain]?[place].cookie = cookie
            byDomain[cookie.domain]?[place].used = ticks
        } else {
            byDomain[cookie.domain, default: []].append(Stored(cookie: cookie, created: ticks, used: ticks))
            count += 1
            makeRoom(in: cookie.domain, at: now)
        }
    }

    mutating func remove(_ cookie: Cookie) {
        guard let place = byDomain[cookie.domain]?.firstIndex(where: { cookie.replaces($0.cookie) }) else { return }
        remove(at: place, of: cookie.domain)
    }

    private mutating func makeRoom(in domain: String, at now: Date) {
        if byDomain[domain, default: []].count > CookieJar.maximumPerDomain { removeLeastUsed(of: [domain], at: now) }
    }

    /// Removes the cookies beyond the total limit.
    mutating func removeExcess(at now: Date, _ suffixes: PublicSuffixList?) {
        guard count > CookieJar.maximumCount else { return }
        let sites = Dictionary(grouping: byDomain.keys) { Self.site(of: $0, suffixes) }
        var counts = sites.mapValues { $0.reduce(0) { $0 + (byDomain[$1]?.count ?? 0) } }
        while count > CookieJar.maximumCount, let (site, most) = counts.max(by: { $0.value < $1.value }) {
            let domains = most > CookieJar.fairCount ? sites[site] ?? [] : Array(byDomain.keys)
            guard let domain = removeLeastUsed(of: domains, at: now) else { return }
            counts[Self.site(of: domain, suffixes), default: 0] -= 1
        }
    }

    /// Returns the last two labels of a domain, or an entire IP address. If these labels are a
    /// known public suffix, the result includes the label before them.
    private static func site(of domain: String, _ suffixes: PublicSuffixList?) -> Substring {
        guard var start = domain.lastIndex(of: "."), !Cookie.Location.isAddress(domain) else { return domain[...] }
        while let dot = domain[..<start].lastIndex(of: ".") {
            let site = domain[domain.index(after: dot)...]
            if suffixes?.contains(site) != true { return site }
            start = dot
        }
        return domain[...]
    }

    /// - Returns: The domain of the removed cookie.
    @discardableResult
    private mutating func removeLeastUsed(of domains: [String], at now: Date) -> String? {
        var victim: (domain: String, place: Int, used: UInt64)?
        for domain in domains {
            for (place, stored) in (byDomain[domain] ?? []).enumerated() {
                let used = stored.cookie.isExpired(at: now) ? 0 : stored.used
                if used < victim?.used ?? .max { victim = (domain, place, used) }
            }
        }
        if let victim { remove(at: victim.place, of: victim.domain) }
        return victim?.domain
    }

    private mutating func remove(at place: Int, of domain: String) {
        byDomain[domain]?.remove(at: place)
        if byDomain[domain]?.isEmpty == true { byDomain[domain] = nil }
        count -= 1
    }
}

extension CookieJar {
    /// Creates a jar with the cookies of a file.
    ///
    /// Expired cookies are omitted. The call blocks the thread.
    ///
    /// - Parameter file: A file written by ``write(to:includingSessionCookies:)``. If it does not
    ///   exist, the jar is empty.
    /// - Throws: ``WebServiceError/Code/storage`` if the file cannot be read, is not a regular
    ///   file, or does not contain cookies.
    public convenience init(contentsOf file: URL) throws {
        try self.init(contentsOf: file, timekeeper: nil)
    }

    package convenience init(contentsOf file: URL, timekeeper: (any Timekeeper)?) throws {
        self.init(timekeeper: timekeeper)
        for cookie in try Self.read(file) { add(cookie) }
    }

    /// Writes the cookies that have not expired to a file, which replaces an existing one.
    ///
    /// The file contains the values of the cookies and is accessible only to the user (0600).
    /// Missing parent folders are created (0700). The bytes are written to another file first and
    /// flushed to the disk, so that after a failure or crash the previous file remains. The call
    /// blocks the thread.
    ///
    /// - Parameters:
    ///   - file: The URL of the file.
    ///   - includingSessionCookies: Whether cookies without an expiry date are written. A user
    ///     agent discards such cookies at the end of a session (RFC 6265, section 5.3). Defaults to
    ///     `false`.
    /// - Throws: ``WebServiceError/Code/storage`` if the file cannot be written; the underlying
    ///   error, if there is one, is that of the system.
    public func write(to file: URL, includingSessionCookies: Bool = false) throws {
        let cookies = cookies.filter { includingSessionCookies || $0.expires != nil }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let bytes = try encoder.encode(cookies)
        let (path, name) = try Self.place(of: file)
        do {
            try Folder.create(path, synchronize: true)
            guard let folder = try Folder(path, followsLink: true) else {
                throw WebServiceError(
                    .storage, "the cookie file's folder is missing or links to a missing folder; create the folder")
            }
            try folder.replace(
                name, with: bytes, through: ".\(name).\(UUID().uuidString)", date: date(), synchronize: true)
            try folder.synchronize()
        } catch let failure as SystemFailure {
            throw failure.error(.storage, "the cookie file could not be written")
        }
    }

    private static func read(_ file: URL) throws -> [Cookie] {
        let (path, name) = try place(of: file)
        do {
            guard let folder = try Folder(path, followsLink: true), try folder.status(of: name) != nil else {
                return []
            }
            guard let content = try folder.content(of: name) else {
                throw WebServiceError(.storage, "the cookie file is not a regular file; use another file")
            }
            return try JSON.decode([Cookie].self, from: content.bytes)
        } catch let failure as SystemFailure {
            throw failure.error(.storage, "the cookie file could not be read")
        } catch let error as DecodingError {
            throw WebServiceError(
                .storage, "the cookie file does not contain cookies of a CookieJar; remove it or use another file",
                underlying: error)
        }
    }

    /// Returns the path of the folder, and the name of the file in it.
    private static func place(of file: URL) throws(WebServiceError) -> (folder: String, name: String) {
        let name = file.lastPathComponent
        guard file.isFileURL, !name.isEmpty, name != "/", name != "..", name != "." else {
            throw WebServiceError(
                .storage, "the URL of the cookie file does not name a file; use URL(fileURLWithPath:) with a file name")
        }
        return (file.absoluteURL.deletingLastPathComponent().path, name)
    }
}
