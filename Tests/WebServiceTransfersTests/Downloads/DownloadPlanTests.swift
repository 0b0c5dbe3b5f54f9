import Foundation
import TestSupport
import Testing
import WebServiceEndpoints
@testable import WebServiceCore
@testable import WebServiceTransfers

@Suite("Plans of downloads", .permit)
struct DownloadPlanTests {
    private typealias Head = DownloadPlan.Head

    private static let tag = "\"1\""
    private static let current = DownloadState(url: "https://h/a")
    private static let stored = DownloadState(url: "https://h/a", headers: ["ETag": tag], total: 1_000)
    private static let plan = DownloadPlan(continuing: stored, length: 400, current: current)

    /// - Parameter fields: Header fields that are added to the entity tag, or replace it.
    private static func step(_ range: String?, _ fields: Headers = [:], plan: DownloadPlan = plan) -> DownloadPlan.Step
    {
        var headers: Headers = ["ETag": tag, "Content-Range": range ?? ""]
        if range == nil { headers["Content-Range"] = nil }
        for field in fields { headers[field.name] = field.value }
        return plan.step(for: Head(status: 206, headers: headers))
    }

    private static func isRefused(_ step: DownloadPlan.Step) -> Bool {
        if case .requestWholeFile = step { true } else { false }
    }

    // MARK: The request

    @Test("A download continues where the partial file ends, if the version is the same")
    func continuing() {
        #expect(Self.plan.offset == 400)
        #expect(Self.plan.headers["Range"] == "bytes=400-")
        #expect(Self.plan.headers["If-Range"] == Self.tag)
        #expect(Self.plan.headers["Accept-Encoding"] == "identity")
    }

    @Test("A partial file that is complete is asked about")
    func complete() {
        #expect(DownloadPlan(continuing: Self.stored, length: 1_000, current: Self.current).offset == 1_000)
    }

    @Test(
        "Without bytes, without a state, with too many bytes or without a validator all is requested")
    func beginning() {
        let weak = DownloadState(url: "https://h/a", headers: ["ETag": "W/\"1\""], total: 1_000)
        let other = DownloadState(url: "https://h/b", headers: ["ETag": Self.tag], total: 1_000)
        let states: [(DownloadState?, Int64)] = [
            (Self.stored, 0), (nil, 400), (Self.stored, 1_001), (weak, 400), (other, 400),
        ]
        for (state, length) in states {
            let plan = DownloadPlan(continuing: state, length: length, current: Self.current)
            #expect(plan == DownloadPlan(wholeFile: Self.current))
            #expect(plan.headers["Range"] == nil)
            #expect(plan.headers["If-Range"] == nil)
            #expect(plan.headers["Accept-Encoding"] == "identity")
        }
    }

    @Test("A piece is requested by its first and last byte")
    func piece() {
        let plan = DownloadPlan(piece: 100...199, of: Self.stored)
        #expect(plan.headers["Range"] == "bytes=100-199")
        #expect(plan.headers["If-Range"] == Self.tag)
        #expect(Self.step("bytes 100-199/1000", plan: plan) == .part(100...199, total: 1_000))
        #expect(Self.step("bytes 100-149/1000", plan: plan) == .part(100...149, total: 1_000))
        #expect(Self.isRefused(Self.step("bytes 99-199/1000", plan: plan)))
        #expect(Self.isRefused(Self.step("bytes 100-200/1000", plan: plan)))
        let first = DownloadPlan(piece: 0...199, of: Self.current)
        #expect(first.headers["If-Range"] == nil)
        #expect(
            Self.step("bytes 0-199/1000", ["ETag": Self.tag, "Last-Modified": "x"], plan: first)
                == .part(0...199, total: 1_000))
    }

    // MARK: The response

    @Test("A part that begins at the end of the file is appended, also a short one")
    func append() {
        #expect(Self.step("bytes 400-999/1000", ["ETag": Self.tag]) == .part(400...999, total: 1_000))
        #expect(Self.step("bytes 400-400/1000") == .part(400...400, total: 1_000))
        #expect(Self.step("bytes 400-999/*") == .part(400...999, total: 1_000))
        #expect(Self.step("bytes 400-999/1000", ["Content-Encoding": "identity"]) == .part(400...999, total: 1_000))
    }

    @Test("A part that begins earlier is compared")
    func overlap() {
        #expect(Self.step("bytes 0-999/1000") == .part(0...999, total: 1_000))
        #expect(Self.step("bytes 399-400/1000") == .part(399...400, total: 1_000))
        #expect(Self.isRefused(Self.step("bytes 0-399/1000")))
    }

    @Test(
        "A part of another version, with another or without a range is not used",
        arguments: [
            (nil, [:]), ("bytes */1000", [:]), ("lines 400-999/1000", [:]), ("bytes 401-999/1000", [:]),
            ("bytes 999-400/1000", [:]), ("bytes 400-1000/1000", [:]), ("bytes 400-1000/*", [:]),
            ("bytes 400-9223372036854775808/*", [:]), ("bytes 400-999/1001", [:]), ("bytes 400-998/999", [:]),
            ("bytes 400-999/1000", ["ETag": "\"2\""]), ("bytes 400-999/1000", ["ETag": "W/\"1\""]),
            ("bytes 400-999/1000", ["Content-Encoding": "gzip"]),
            (nil, ["Content-Type": "multipart/byteranges; boundary=a"]),
            ("bytes 400-999/1000", ["Content-Type": "Multipart/ByteRanges; boundary=a"]),
            ("bytes 400-999/1000", ["ETag": ""]),
        ] as [(String?, Headers)])
    func refused(range: String?, headers: Headers) {
        #expect(Self.isRefused(Self.step(range, headers)))
    }

    @Test(
        "A part without the entity tag of the version is not used, also as a piece or an overlap",
        arguments: [plan, DownloadPlan(piece: 400...999, of: stored)])
    func unknownVersion(plan: DownloadPlan) {
        for headers in [[:], ["Last-Modified": DownloadStateTests.date], ["Content-Length": "600"]] as [Headers] {
            for range in ["bytes 400-999/1000", "bytes 400-999/*", "bytes 300-999/1000"] {
                var headers = headers
                headers["Content-Range"] = range
                #expect(Self.isRefused(plan.step(for: Head(status: 206, headers: headers))))
            }
        }
    }

    @Test("A part with another date of modification is not used")
    func otherDate() {
        let state = DownloadState(
            url: "https://h/a",
            headers: ["Last-Modified": DownloadStateTests.date, "Date": DownloadStateTests.second], total: 1_000)
        let plan = DownloadPlan(continuing: state, length: 400, current: Self.current)
        #expect(plan.headers["If-Range"] == DownloadStateTests.date)
        #expect(
            Self.step("bytes 400-999/1000", ["Last-Modified": DownloadStateTests.date], plan: plan)
                == .part(400...999, total: 1_000))
        #expect(
            Self.isRefused(Self.step("bytes 400-999/1000", ["Last-Modified": DownloadStateTests.second], plan: plan)))
        // D-300: RFC 9110 lets a server omit the date, but then the version is not known.
        #expect(Self.isRefused(Self.step("bytes 400-999/1000", plan: plan)))
    }

    @Test("A part that was not requested is an error")
    func unrequested() {
        let plan = DownloadPlan(wholeFile: Self.current)
        guard case .fail = Self.step("bytes 0-999/1000", plan: plan) else {
            Issue.record("the part was accepted")
            return
        }
        guard case .fail = plan.step(for: Head(status: 416, headers: ["Content-Range": "bytes */0"])) else {
            Issue.record("the status was accepted")
            return
        }
    }

    @Test("A whole file is used in place of the part")
    func wholeFile() {
        func step(_ headers: Headers, plan: DownloadPlan = Self.plan, known: DownloadState? = Self.stored)
            -> DownloadPlan.Step
        {
            plan.step(for: Head(status: 200, headers: headers), known: known)
        }
        #expect(step(["Content-Length": "1000"]) == .wholeFile(total: 1_000))
        #expect(step(["Content-Length": "1200", "ETag": "\"2\""]) == .wholeFile(total: 1_200))
        #expect(Self.isRefused(step([:])))
        let whole = DownloadPlan(wholeFile: Self.current)
        #expect(step([:], plan: whole, known: nil) == .wholeFile(total: nil))
        #expect(step(["Content-Encoding": "gzip", "Content-Length": "7"], plan: whole) == .wholeFile(total: nil))
        // The entity tag identifies a file of a known length.
        #expect(step(["ETag": Self.tag], plan: whole) == .wholeFile(total: 1_000))
        #expect(step(["ETag": Self.tag, "Content-Length": "1000"]) == .wholeFile(total: 1_000))
        #expect(step(["Content-Range": "bytes 0-999/1000", "Content-Length": "1000"]) == .wholeFile(total: 1_000))
        #expect(step(["Content-Range": "bytes 0-0/1", "ETag": "\"2\""]) == .wholeFile(total: 1))
    }

    @Test("A status 200 with a range is a part, and with an unclear one the whole file is requested")
    func rangeWithoutStatus() {
        func step(_ headers: Headers, plan: DownloadPlan = Self.plan) -> DownloadPlan.Step {
            plan.step(for: Head(status: 200, headers: headers), known: Self.stored)
        }
        let part: Headers = ["Content-Range": "bytes 400-999/1000", "ETag": Self.tag]
        #expect(step(part.adding(["Content-Length": "600"])) == .part(400...999, total: 1_000))
        // The body may be the whole file.
        #expect(Self.isRefused(step(part)))
        #expect(Self.isRefused(step(part.adding(["Content-Length": "1000"]))))
        #expect(Self.isRefused(step(["Content-Range": "bytes 400-999/1000", "Content-Length": "600"])))
        #expect(Self.isRefused(step(["Content-Range": "bytes */1000", "Content-Length": "1000"])))
        #expect(Self.isRefused(step(["Content-Range": "lines 0-1/2", "Content-Length": "1000"])))
        #expect(
            Self.isRefused(step(part.adding(["Content-Length": "600", "Content-Encoding": "gzip"]))))
        // A body of the requested length may be the part, whatever the head omits.
        #expect(Self.isRefused(step(["Content-Length": "600"])))
        #expect(Self.isRefused(step(["ETag": Self.tag])))
        #expect(Self.isRefused(step(["Content-Length": "7", "Content-Encoding": "gzip"])))
        #expect(step(["Content-Length": "600"], plan: DownloadPlan(wholeFile: Self.current)) == .wholeFile(total: 600))
        guard case .fail = step(part.adding(["Content-Length": "600"]), plan: DownloadPlan(wholeFile: Self.current))
        else {
            Issue.record("the part was accepted")
            return
        }
    }

    @Test("One strong entity tag with two lengths is a contradiction")
    func contradiction() {
        func isContradiction(_ headers: Headers, _ status: Int = 200, plan: DownloadPlan = Self.plan) -> Bool {
            let step = plan.step(for: Head(status: status, headers: headers), known: Self.stored)
            if case .contradiction = step { return true }
            return false
        }
        let whole = DownloadPlan(wholeFile: Self.current)
        for plan in [Self.plan, whole] {
            #expect(isContradiction(["ETag": Self.tag, "Content-Length": "700"], plan: plan))
            #expect(isContradiction(["ETag": Self.tag, "Content-Range": "bytes 0-599/600"], plan: plan))
            #expect(!isContradiction(["ETag": "\"2\"", "Content-Length": "600"], plan: plan))
            #expect(!isContradiction(["ETag": "W/\"1\"", "Content-Length": "600"], plan: plan))
            // The tag is that of the origin server, and the body another.
            #expect(!isContradiction(["ETag": Self.tag, "Content-Length": "600"], 203, plan: plan))
        }
    }

    @Test("The lengths of a part agree")
    func lengths() {
        for length in ["599", "601", "x", "", "-1", "600, 601", "600,", "9223372036854775808"] {
            #expect(Self.isRefused(Self.step("bytes 400-999/1000", ["Content-Length": length])), "\(length)")
            let whole = Self.plan.step(for: Head(status: 200, headers: ["Content-Length": length]), known: Self.stored)
            if Int(length) == nil || length == "-1" { #expect(Self.isRefused(whole), "\(length)") }
        }
        for length in ["600", "600, 600", " 600"] {
            #expect(
                Self.step("bytes 400-999/1000", ["Content-Length": length]) == .part(400...999, total: 1_000),
                "\(length)")
        }
        let first = DownloadPlan(piece: 0...199, of: Self.current)
        #expect(Self.step("bytes 0-199/1000", plan: first) == .part(0...199, total: 1_000))
        #expect(Self.step("bytes 0-199/*", plan: first) == .part(0...199, total: nil))
        let open = DownloadState(url: "https://h/a", headers: ["ETag": Self.tag])
        let largest = DownloadPlan(continuing: open, length: 1, current: Self.current)
        #expect(Self.isRefused(Self.step("bytes 1-9223372036854775807/*", ["Content-Length": "1"], plan: largest)))
        #expect(
            Self.step("bytes 1-9223372036854775806/*", plan: largest)
                == .part(1...9_223_372_036_854_775_806, total: nil))
    }

    @Test("A range that cannot be satisfied is the end of a file of this length only")
    func unsatisfied() {
        func step(_ range: String?, length: Int64, total: Int64? = 1_000, tag: String? = nil) -> DownloadPlan.Step {
            var state = Self.stored
            state.total = total
            let plan = DownloadPlan(continuing: state, length: length, current: Self.current)
            var headers: Headers = range.map { ["Content-Range": $0] } ?? [:]
            headers["ETag"] = tag
            return plan.step(for: Head(status: 416, headers: headers))
        }
        #expect(step("bytes */1000", length: 1_000) == .complete)
        #expect(step("bytes */1000", length: 1_000, tag: Self.tag) == .complete)
        #expect(Self.isRefused(step("bytes */1000", length: 1_000, tag: "\"2\"")))
        // Another version may have the length of the bytes that were received of this one.
        #expect(step("bytes */1000", length: 1_000, total: nil, tag: Self.tag) == .complete)
        #expect(Self.isRefused(step("bytes */1000", length: 1_000, total: nil)))
        #expect(Self.isRefused(step("bytes */1000", length: 1_000, total: nil, tag: "\"2\"")))
        #expect(Self.isRefused(step("bytes */999", length: 1_000)))
        #expect(Self.isRefused(step("bytes */400", length: 400)))
        #expect(Self.isRefused(step(nil, length: 1_000)))
        // The partial file may have bytes of another version, even if the file is empty.
        let first = DownloadPlan(piece: 0...199, of: Self.current)
        #expect(Self.isRefused(first.step(for: Head(status: 416, headers: ["Content-Range": "bytes */0"]))))
        #expect(Self.isRefused(step("bytes 0-1/1000", length: 1_000)))
    }
}
