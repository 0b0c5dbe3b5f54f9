import Foundation
import TestSupport
import Testing
@testable import WebServiceCore
@testable import WebServiceDownloads

@Suite("Plans of downloads", .permit)
struct DownloadPlanTests {
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
        return plan.step(status: 206, headers: headers)
    }

    private static func isRefused(_ step: DownloadPlan.Step) -> Bool {
        if case .requestWholeFile = step { true } else { false }
    }

    // MARK: The request

    @Test("A download continues where the partial file ends, if the version is the same", .covers("D-04"))
    func continuing() {
        #expect(Self.plan.offset == 400)
        #expect(Self.plan.headers["Range"] == "bytes=400-")
        #expect(Self.plan.headers["If-Range"] == Self.tag)
        #expect(Self.plan.headers["Accept-Encoding"] == "identity")
    }

    @Test("A partial file that is complete is asked about", .covers("D-11"))
    func complete() {
        #expect(DownloadPlan(continuing: Self.stored, length: 1_000, current: Self.current).offset == 1_000)
    }

    @Test(
        "Without bytes, without a state, with too many bytes or without a validator all is requested",
        .covers("D-12", "D-13"))
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

    @Test("A piece is requested by its first and last byte", .covers("D-31"))
    func piece() {
        let plan = DownloadPlan(piece: 100...199, of: Self.stored)
        #expect(plan.headers["Range"] == "bytes=100-199")
        #expect(plan.headers["If-Range"] == Self.tag)
        #expect(Self.step("bytes 100-199/1000", plan: plan) == .append(100...199))
        #expect(Self.step("bytes 100-149/1000", plan: plan) == .append(100...149))
        #expect(Self.isRefused(Self.step("bytes 99-199/1000", plan: plan)))
        #expect(Self.isRefused(Self.step("bytes 100-200/1000", plan: plan)))
        let first = DownloadPlan(piece: 0...199, of: Self.current)
        #expect(first.headers["If-Range"] == nil)
        #expect(
            Self.step("bytes 0-199/1000", ["ETag": Self.tag, "Last-Modified": "x"], plan: first) == .append(0...199))
    }

    // MARK: The response

    @Test("A part that begins at the end of the file is appended, also a short one", .covers("D-04", "D-09"))
    func append() {
        #expect(Self.step("bytes 400-999/1000", ["ETag": Self.tag]) == .append(400...999))
        #expect(Self.step("bytes 400-400/1000") == .append(400...400))
        #expect(Self.step("bytes 400-999/*") == .append(400...999))
        #expect(Self.step("bytes 400-999/1000", ["Content-Encoding": "identity"]) == .append(400...999))
    }

    @Test("A part that begins earlier is compared", .covers("D-07"))
    func overlap() {
        #expect(Self.step("bytes 0-999/1000") == .overlap(0...999))
        #expect(Self.step("bytes 399-400/1000") == .overlap(399...400))
        #expect(Self.isRefused(Self.step("bytes 0-399/1000")))
    }

    @Test(
        "A part of another version, with another or without a range is not used", .covers("D-06", "D-08"),
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
        "A part without the entity tag of the version is not used, also as a piece or an overlap", .covers("D-300"),
        arguments: [plan, DownloadPlan(piece: 400...999, of: stored)])
    func unknownVersion(plan: DownloadPlan) {
        for headers in [[:], ["Last-Modified": DownloadStateTests.date], ["Content-Length": "600"]] as [Headers] {
            for range in ["bytes 400-999/1000", "bytes 400-999/*", "bytes 300-999/1000"] {
                var headers = headers
                headers["Content-Range"] = range
                #expect(Self.isRefused(plan.step(status: 206, headers: headers)))
            }
        }
    }

    @Test("A part with another date of modification is not used", .covers("D-06"))
    func otherDate() {
        let state = DownloadState(
            url: "https://h/a",
            headers: ["Last-Modified": DownloadStateTests.date, "Date": DownloadStateTests.second], total: 1_000)
        let plan = DownloadPlan(continuing: state, length: 400, current: Self.current)
        #expect(plan.headers["If-Range"] == DownloadStateTests.date)
        #expect(
            Self.step("bytes 400-999/1000", ["Last-Modified": DownloadStateTests.date], plan: plan)
                == .append(400...999))
        #expect(
            Self.isRefused(Self.step("bytes 400-999/1000", ["Last-Modified": DownloadStateTests.second], plan: plan)))
        // D-300: RFC 9110 lets a server omit the date, but then the version is not known.
        #expect(Self.isRefused(Self.step("bytes 400-999/1000", plan: plan)))
    }

    @Test("A part that was not requested is an error", .covers("D-10"))
    func unrequested() {
        let plan = DownloadPlan(wholeFile: Self.current)
        guard case .fail = Self.step("bytes 0-999/1000", plan: plan) else {
            Issue.record("the part was accepted")
            return
        }
        guard case .fail = plan.step(status: 416, headers: ["Content-Range": "bytes */0"]) else {
            Issue.record("the status was accepted")
            return
        }
    }

    @Test("A whole file is used in place of the part", .covers("D-05", "D-15"))
    func wholeFile() {
        #expect(Self.plan.step(status: 200, headers: ["Content-Length": "1000"]) == .wholeFile)
        #expect(Self.plan.step(status: 200, headers: ["Content-Range": "bytes 400-999/1000"]) == .wholeFile)
        #expect(DownloadPlan(wholeFile: Self.current).step(status: 200, headers: [:]) == .wholeFile)
    }

    @Test("A range that cannot be satisfied is the end of a file of this length only", .covers("D-11"))
    func unsatisfied() {
        func step(_ range: String?, length: Int64, total: Int64? = 1_000, tag: String? = nil) -> DownloadPlan.Step {
            var state = Self.stored
            state.total = total
            let plan = DownloadPlan(continuing: state, length: length, current: Self.current)
            var headers: Headers = range.map { ["Content-Range": $0] } ?? [:]
            headers["ETag"] = tag
            return plan.step(status: 416, headers: headers)
        }
        #expect(step("bytes */1000", length: 1_000) == .complete)
        // Another version may have the length of the bytes that were received of this one.
        #expect(step("bytes */1000", length: 1_000, total: nil, tag: Self.tag) == .complete)
        #expect(Self.isRefused(step("bytes */1000", length: 1_000, total: nil)))
        #expect(Self.isRefused(step("bytes */1000", length: 1_000, total: nil, tag: "\"2\"")))
        #expect(Self.isRefused(step("bytes */999", length: 1_000)))
        #expect(Self.isRefused(step("bytes */400", length: 400)))
        #expect(Self.isRefused(step(nil, length: 1_000)))
        #expect(Self.isRefused(step("bytes 0-1/1000", length: 1_000)))
    }
}
