/// A scenario that a session of Foundation does not keep on Linux, Swift 6.3.1.
struct KnownDefect: Sendable, CustomStringConvertible {
    enum Effect: Sendable {
        /// The promise is not kept.
        case breaks
        /// The process dies.
        case kills
        /// The promise is kept or not, as the threads run.
        case varies
        /// The promise is kept, or the process dies: seldom, as the threads run.
        case mayKill
    }

    let kind: FoundationBacked
    let effect: Effect
    let scenario: String
    let reason: String

    var description: String { "\(kind.rawValue): \(scenario) (\(reason))" }

    #if canImport(Darwin)
    static let all: [KnownDefect] = []
    #else
    static let all =
        FoundationBacked.allCases.flatMap { kind in (ofBoth + surplus).map { KnownDefect(kind: kind, effect: $0, scenario: $1, reason: $2) } }
        + ofURLSession.map { KnownDefect(kind: .urlSession, effect: $0, scenario: $1, reason: $2) }
    #endif

    /// What is Foundation's own, whoever uses it.
    private static let ofBoth: [(Effect, String, String)] = [
        (.kills, "a length of 2^63 - 1 with a short body is an error, and not the end of the process", "F1: traps in its progress"),
        (
            .kills, "chunks with a trailer behind them are an answer",
            "a trailer is taken for a new head: \"Transfer completed, but there's no response\""
        ),
        (.kills, "a head is whole or an error, wherever it is cut", "libcurl calls it complete: \"Transfer completed, but there's no response\""),
        (.breaks, "repeated header fields of an answer arrive also where their names differ in case", "one of them is dropped"),
        (.breaks, "a redirect without a target is an answer with its body", "the body is dropped"),
        (.breaks, "a header field without a blank behind the colon is one", "F16: -1"),
        (.breaks, "POST on a kept connection that ends without an answer completes in time and is not sent twice", "F13: waits for the time-out"),
        (.breaks, "two lengths that differ are an error", "F9: the last one counts"),
        (.breaks, "a length with letters behind it is an error", "F9: the digits count"),
        (.breaks, "a length of 23 digits is an error", "F9: it is ignored"),
        (.breaks, "a length of 2^63 is an error, and not the end of the process", "F9: it is ignored"),
        (.breaks, "garbage in place of a status line is an error", "F14: that of an unsupported URL"),
        (.breaks, "an answer without a head is an error", "F14: that of an unsupported URL"),
        (.breaks, "a status of letters is an error", "F14: that of an unsupported URL"),
        (.breaks, "an answer in gzip that is cut, with a right length, is an error", "F9: what could be decoded is the answer"),
        (.breaks, "an answer in gzip without its checksum is an error", "F9: it is not missed"),
        (.varies, "POST on a connection that the server has closed completes in time and is not sent twice", "F13: may wait for the time-out"),
        (.varies, "a body of small chunks that never ends is responseTooLarge, and the connection is given up", "cancel waits while bytes come"),
        (
            .mayKill, "500 tasks that are cancelled at any moment complete once each, with their own answer or as cancelled",
            "F3: cancel and completion at once: \"a task that in not in the registry\""
        ),
        (.varies, "a body that never ends is responseTooLarge, and the connection is given up", "cancel waits while bytes come"),
    ]

    private static let surplus: [(Effect, String, String)] = [
        "a second response", "a body after a 204", "a body after a 304", "what follows the last chunk", "a part of a response",
    ].map {
        (
            .breaks, "\($0) on a connection that is kept does not answer the next request, when it arrives later",
            "it is taken for the next response (RFC 9112, section 6.3)"
        )
    }

    /// What a `URLSession` without our delegate and clock does besides.
    private static let ofURLSession: [(Effect, String, String)] = [
        (.breaks, "a redirect is an answer and is not followed", "the body is dropped"),
        (.breaks, "a redirect to another host is an answer and is not followed", "the body is dropped"),
        (.breaks, "a 401 with a Basic challenge is an answer with its body", "F5: the body is dropped"),
        (.breaks, "a 401 with several challenges is an answer with its body", "F5: the body is dropped"),
        (.breaks, "silence before the head ends when the time-out of the request is over", "less than a second is none"),
        (.breaks, "silence in the middle of the head ends when the time-out of the request is over", "less than a second is none"),
        (.breaks, "silence in the middle of the body ends when the time-out of the request is over", "less than a second is none"),
        (.breaks, "a body whose length is beyond the maximum is responseTooLarge", "F11: it has no maximum"),
        (.breaks, "a body that is announced as too long is not waited for", "F11: it has no maximum"),
        (.breaks, "a body in chunks beyond the maximum is responseTooLarge", "F11: it has no maximum"),
        (.breaks, "a body that ends with the connection and is beyond the maximum is responseTooLarge", "F11: it has no maximum"),
        (.breaks, "a body that is beyond the maximum only when it is decoded is responseTooLarge", "F11: it has no maximum"),
    ]
}

/// A platform defect that no scenario shows: a probe of `session-probe` (`Tests/SessionProbe/Probes.swift`).
struct PlatformDefect: Sendable, CustomStringConvertible {
    let probe: String
    let effect: KnownDefect.Effect
    let reason: String

    var description: String { "\(probe) (\(reason))" }

    #if canImport(Darwin)
    static let all: [PlatformDefect] = []
    #else
    static let all = [
        PlatformDefect(probe: "a task that is suspended and cancelled completes", effect: .kills, reason: "F2: traps in stopLoading"),
        PlatformDefect(probe: "a task of an invalidated session completes with an error", effect: .kills, reason: "F4: \"Session invalidated\""),
        PlatformDefect(probe: "timeoutIntervalForResource ends an exchange", effect: .breaks, reason: "F10: it is ignored"),
        PlatformDefect(
            probe: "FoundationSession: bytes on an idle connection are not the next response", effect: .breaks,
            reason: "they are taken for it (RFC 9112, section 9.5)"),
        PlatformDefect(
            probe: "URLSession: bytes on an idle connection are not the next response", effect: .breaks,
            reason: "they are taken for it (RFC 9112, section 9.5)"),
        PlatformDefect(
            probe: "a URL with an IPv6 address is requested", effect: .breaks,
            reason: "the host without brackets is compared with the host with brackets: -1000"),
        PlatformDefect(
            probe: "cancel ends a body that arrives without a pause", effect: .breaks,
            reason: "the work queue of the sessions never gets to the cancellation"),
        PlatformDefect(
            probe: "a body that arrives without a pause holds up no other session", effect: .breaks,
            reason: "all sessions of a process share one queue"),
    ]
    #endif
}
