/// A scenario that fails over a session of Foundation on Linux with Swift 6.3.1.
struct KnownDefect: Sendable, CustomStringConvertible {
    enum Effect: Sendable {
        /// The scenario fails.
        case breaks
        /// The process ends.
        case kills
        /// The scenario passes or fails, depending on thread scheduling.
        case varies
        /// The scenario passes, or the process ends: rarely, depending on thread scheduling.
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
        FoundationBacked.allCases.flatMap { kind in
            (ofBoth + surplus).map { KnownDefect(kind: kind, effect: $0, scenario: $1, reason: $2) }
        }
        + ofURLSession.map { KnownDefect(kind: .urlSession, effect: $0, scenario: $1, reason: $2) }
        + [
            KnownDefect(
                kind: .foundationSession, effect: .kills, scenario: "trailer fields are delivered, or not at all",
                reason: "F1: a trailer is parsed as a new head")
        ]
    #endif

    /// Defects of Foundation itself, present in every session.
    private static let ofBoth: [(Effect, String, String)] = [
        (
            .kills, "a Content-Length of 2^63 - 1 with a short body is an error and does not end the process",
            "F1: traps in its progress reporting"
        ),
        (
            .kills, "a chunked body with a trailer is delivered",
            "a trailer is parsed as a new head: \"Transfer completed, but there's no response\""
        ),
        (
            .kills, "a head that is truncated at any offset is an error",
            "libcurl treats it as complete: \"Transfer completed, but there's no response\""
        ),
        (
            .breaks, "repeated response header fields whose names differ in case are delivered completely and in order",
            "one of them is dropped"
        ),
        (.breaks, "a redirect without a target is delivered with its body", "the body is dropped"),
        (.breaks, "a header field without a space after the colon is accepted", "F16: fails with error -1"),
        (
            .breaks, "POST on a reused connection that ends without a response completes in time and is not sent twice",
            "F13: waits for the timeout"
        ),
        (.breaks, "two different Content-Length values are an error", "F9: the last one is used"),
        (.breaks, "a Content-Length followed by letters is an error", "F9: the digits are used"),
        (.breaks, "a Content-Length of 23 digits is an error", "F9: it is ignored"),
        (.breaks, "a Content-Length of 2^63 is an error and does not end the process", "F9: it is ignored"),
        (.breaks, "garbage instead of a status line is an error", "F14: the error is that of an unsupported URL"),
        (.breaks, "a response without a head is an error", "F14: the error is that of an unsupported URL"),
        (.breaks, "a status that is not a number is an error", "F14: the error is that of an unsupported URL"),
        (
            .breaks, "a truncated gzip body with a matching Content-Length is an error",
            "F9: the decoded part is delivered as the body"
        ),
        (.breaks, "a gzip body without its checksum is an error", "F9: the missing checksum is not detected"),
        (
            .varies, "POST on a connection that the server has closed completes in time and is not sent twice",
            "F13: may wait for the timeout"
        ),
        (
            .varies, "an endless body of small chunks is responseTooLarge, and its connection is closed",
            "cancellation waits while bytes arrive"
        ),
        (
            .mayKill, "500 tasks cancelled at random times complete once each, with their own response or as cancelled",
            "F3: cancellation and completion coincide: \"a task that in not in the registry\""
        ),
        (
            .varies, "an endless body is responseTooLarge, and its connection is closed",
            "cancellation waits while bytes arrive"
        ),
    ]

    private static let surplus: [(Effect, String, String)] = [
        "a second response", "a body after a 204", "a body after a 304", "data after the last chunk",
        "a partial response",
    ].map {
        (
            .breaks, "\($0) on a persistent connection is not the next response when it arrives later",
            "it is delivered as the next response (RFC 9112, section 6.3)"
        )
    }

    /// Additional defects of a `URLSession` without the delegate and clock of this package.
    private static let ofURLSession: [(Effect, String, String)] = [
        (.breaks, "a redirect is delivered as a response and not followed", "the body is dropped"),
        (.breaks, "a redirect to another host is delivered as a response and not followed", "the body is dropped"),
        (.breaks, "a 401 with a Basic challenge is delivered with its body", "F5: the body is dropped"),
        (.breaks, "a 401 with several challenges is delivered with its body", "F5: the body is dropped"),
        (
            .breaks, "silence before the head fails after the timeout of the request",
            "a timeout below one second is ignored"
        ),
        (
            .breaks, "silence in the middle of the head fails after the timeout of the request",
            "a timeout below one second is ignored"
        ),
        (
            .breaks, "silence in the middle of the body fails after the timeout of the request",
            "a timeout below one second is ignored"
        ),
        (.breaks, "a body whose Content-Length exceeds the maximum is responseTooLarge", "F11: there is no maximum"),
        (
            .breaks, "a Content-Length that exceeds the maximum fails before the body has arrived",
            "F11: there is no maximum"
        ),
        (.breaks, "a chunked body that exceeds the maximum is responseTooLarge", "F11: there is no maximum"),
        (
            .breaks, "a body that ends with the connection and exceeds the maximum is responseTooLarge",
            "F11: there is no maximum"
        ),
        (
            .breaks, "a body that exceeds the maximum only after decoding is responseTooLarge",
            "F11: there is no maximum"
        ),
    ]
}

/// A platform defect that no scenario covers: a probe of `session-probe`
/// (`Tests/SessionProbe/Probes.swift`).
struct PlatformDefect: Sendable, CustomStringConvertible {
    let probe: String
    let effect: KnownDefect.Effect
    let reason: String

    var description: String { "\(probe) (\(reason))" }

    #if canImport(Darwin)
    static let all: [PlatformDefect] = []
    #else
    static let all = [
        PlatformDefect(
            probe: "a task that is suspended and cancelled completes", effect: .kills,
            reason: "F2: traps in stopLoading"),
        PlatformDefect(
            probe: "a task of an invalidated session completes with an error", effect: .kills,
            reason: "F4: \"Session invalidated\""),
        PlatformDefect(
            probe: "timeoutIntervalForResource ends an exchange", effect: .breaks, reason: "F10: it is ignored"),
        PlatformDefect(
            probe: "FoundationSession: bytes on an idle connection are not the next response", effect: .breaks,
            reason: "they are delivered as the next response (RFC 9112, section 9.5)"),
        PlatformDefect(
            probe: "URLSession: bytes on an idle connection are not the next response", effect: .breaks,
            reason: "they are delivered as the next response (RFC 9112, section 9.5)"),
        PlatformDefect(
            probe: "a URL with an IPv6 address is requested", effect: .breaks,
            reason: "the host without brackets is compared with the host with brackets: -1000"),
        PlatformDefect(
            probe: "cancel ends a body that arrives without a pause", effect: .breaks,
            reason: "the work queue of the sessions never processes the cancellation"),
        PlatformDefect(
            probe: "a body that arrives without a pause does not block other sessions", effect: .breaks,
            reason: "all sessions of a process share one queue"),
    ]
    #endif
}
