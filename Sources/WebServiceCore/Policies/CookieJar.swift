public import Foundation

/// The cookies of one service, in memory, by the rules of RFC 6265 for user agents (section 5).
///
/// ```swift
/// let jar = CookieJar()
/// jar.store(["sid=1; Path=/; Secure"], from: url)
/// jar.header(for: url)  // "sid=1"
/// ```
/// What is guaranteed:
/// - A cookie goes to the host that set it, and to hosts below its `Domain` attribute where it has one. A host can name itself and the domains
///   above it that have a dot in them; an IP address only itself. There is no list of public suffixes, so a host below `co.uk` can set a cookie
///   for all of `co.uk`. Hosts are compared as they are sent: a `Domain` outside ASCII matches none.
/// - A `Secure` cookie comes and goes over https only, and over http none can be set that would stand in its place. The prefixes `__Secure-` and
///   `__Host-` are enforced.
/// - Neither port nor scheme isolates cookies otherwise (RFC 6265, section 8.5): `http://h:1` and `https://h:2` share them. `SameSite` is
///   ignored, because here is no site that sends requests to another.
/// - A cookie without a name, with a control character, or with more than 4,096 bytes of name and value is ignored. Of one response the last
///   180 cookies count. Beyond 180 cookies of one domain, or 3,000 in all, an expired one goes first, else the one that was not used for
///   longest (RFC 6265, section 6.1). In the second case it is one of the site that has the most cookies, where that has more than 50, so that no
///   site removes those of others by setting many; a site is what ends in the same two labels.
///
/// Every member may be called on any thread. Nothing is written to disk, and nothing printed holds a value.
public final class CookieJar: Sendable {
    /// How many cookies one domain can have.
    static let maximumPerDomain = 180
    /// How many cookies there can be.
    static let maximumCount = 3_000
    /// How many cookies one site can have before it alone makes room for others (RFC 6265, section 6.1).
    static let fairCount = 50

    private let state = Mutex(State())
    private let now: @Sendable () -> Date

    /// Makes an empty jar. `now` tells the time by which cookies expire; it is called on the thread of the caller.
    public init(now: @escaping @Sendable () -> Date = { Date() }) {
        self.now = now
    }

    /// The cookies that have not expired, oldest first.
    public var cookies: [Cookie] {
        let now = now()
        let all = state.withLock { $0.all }
        return all.filter { !$0.cookie.isExpired(at: now) }.sorted { $0.created < $1.created }.map(\.cookie)
    }

    /// The value of the `Cookie` field for a request (RFC 6265, section 5.4): longer paths first, then older cookies.
    ///
    /// `nil` where no cookie matches, and for what is no http or https URL or holds user information. Cookies with which the value would be
    /// longer than ``Request/maximumHeaderValueLength`` are left out.
    public func header(for url: URL) -> String? {
        guard state.withLock({ $0.count > 0 }), let location = Cookie.Location(url) else { return nil }
        let now = now()
        let found = state.withLock { $0.use(for: location, at: now) }
        var value = ""
        for cookie in found.sorted(by: { ($1.cookie.path.utf8.count, $0.created) < ($0.cookie.path.utf8.count, $1.created) }).map(\.cookie) {
            let pair = "\(value.isEmpty ? "" : "; ")\(cookie.name)=\(cookie.value)"
            if value.utf8.count + pair.utf8.count <= Request.maximumHeaderValueLength { value += pair }
        }
        return value.isEmpty ? nil : value
    }

    /// Takes over the cookies of a response (RFC 6265, sections 5.2 and 5.3). What the rules refuse is ignored. A cookie replaces the one of the
    /// same name, domain and path and keeps its place in the order; one that has expired removes it.
    ///
    /// - Parameters:
    ///   - setCookieFields: The values of the `Set-Cookie` fields.
    ///   - joined: Whether several cookies may be joined in one value with `", "`, as Foundation does. Then a cookie's own value ends before a
    ///     comma, a blank, a name and `=`, and what follows may come from anyone who could choose a part of that value, so only the first
    ///     cookie of a field may have the prefix `__Secure-` or `__Host-`. With `false` each value is one cookie.
    ///   - url: The URL that answered; a redirect's cookies belong to the URL that redirected. What is no http or https URL sets no cookie.
    public func store(_ setCookieFields: [String], joined: Bool = true, from url: URL) {
        guard !setCookieFields.isEmpty, let location = Cookie.Location(url) else { return }
        let now = now()
        let fields = joined ? setCookieFields.flatMap(Cookie.split) : setCookieFields.map { Array($0.utf8)[...] }
        let cookies = fields.compactMap { Cookie($0, from: location, at: now) }.suffix(Self.maximumPerDomain)
        state.withLock { state in
            let secure = location.isSecure ? [:] : state.secure(at: now)
            for cookie in cookies where !(secure[cookie.name]?.contains(where: cookie.overlaps) ?? false) { state.store(cookie, at: now) }
            state.removeExcess(at: now)
        }
    }

    /// Removes every cookie.
    public func removeAll() {
        state.withLock { $0 = State() }
    }
}

extension CookieJar: CustomStringConvertible, CustomReflectable {
    /// How many cookies have not expired.
    public var description: String { "CookieJar(\(cookies.count))" }

    /// What `dump` shows: the same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["jar": description]) }
}

private struct Stored {
    var cookie: Cookie
    /// Its place in the order of creation, kept when the cookie is replaced. Moments of a clock could be equal or run backwards.
    let created: UInt64
    var used: UInt64
}

private struct State {
    private var byDomain: [String: [Stored]] = [:]
    private(set) var count = 0
    private var ticks: UInt64 = 0

    var all: [Stored] { byDomain.values.flatMap(\.self) }

    /// The cookies for a request; from now on they are the ones used last.
    mutating func use(for location: Cookie.Location, at now: Date) -> [Stored] {
        ticks += 1
        var found: [Stored] = []
        for domain in location.domains {
            for (index, stored) in (byDomain[domain] ?? []).enumerated() where stored.cookie.isSent(to: location) && !stored.cookie.isExpired(at: now)
            {
                byDomain[domain]?[index].used = ticks
                found.append(stored)
            }
        }
        return found
    }

    /// The `Secure` cookies that have not expired, by name.
    func secure(at now: Date) -> [String: [Cookie]] {
        Dictionary(grouping: all.map(\.cookie).filter { $0.isSecure && !$0.isExpired(at: now) }, by: \.name)
    }

    mutating func store(_ cookie: Cookie, at now: Date) {
        ticks += 1
        let place = byDomain[cookie.domain]?.firstIndex { cookie.replaces($0.cookie) }
        if cookie.isExpired(at: now) {
            if let place { remove(at: place, of: cookie.domain) }
        } else if let place {
            byDomain[cookie.domain]?[place].cookie = cookie
            byDomain[cookie.domain]?[place].used = ticks
        } else {
            byDomain[cookie.domain, default: []].append(Stored(cookie: cookie, created: ticks, used: ticks))
            count += 1
            makeRoom(in: cookie.domain, at: now)
        }
    }

    private mutating func makeRoom(in domain: String, at now: Date) {
        if byDomain[domain, default: []].count > CookieJar.maximumPerDomain { removeLeastUsed(of: [domain], at: now) }
    }

    /// Removes what is beyond the limit for all cookies.
    mutating func removeExcess(at now: Date) {
        guard count > CookieJar.maximumCount else { return }
        let sites = Dictionary(grouping: byDomain.keys, by: Self.site)
        var counts = sites.mapValues { $0.reduce(0) { $0 + (byDomain[$1]?.count ?? 0) } }
        while count > CookieJar.maximumCount, let (site, most) = counts.max(by: { $0.value < $1.value }) {
            let domains = most > CookieJar.fairCount ? sites[site] ?? [] : Array(byDomain.keys)
            guard let domain = removeLeastUsed(of: domains, at: now) else { return }
            counts[Self.site(of: domain), default: 0] -= 1
        }
    }

    /// The last two labels of a domain, all of an IP address. Where registrations are made below more labels, as in `co.uk`, more share a site.
    private static func site(of domain: String) -> Substring {
        guard let last = domain.lastIndex(of: "."), !Cookie.Location.isAddress(domain) else { return domain[...] }
        let name = domain[..<last].lastIndex(of: ".").map { domain.index(after: $0) }
        return domain[(name ?? domain.startIndex)...]
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
