import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct ParameterStrategyTests {
    /// Expects the same encoding of parameters in a query and in a form.
    private func expect(
        _ parameters: Parameters, _ strategy: ParameterStrategy = .init(), gives text: String?,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let query = try Request.make {
            $0.queryParameters = parameters
            $0.parameterStrategy = strategy
        }.encodedQuery()
        let form = try Request.make(.POST) {
            $0.formParameters = parameters
            $0.parameterStrategy = strategy
        }.encodedBody()
        #expect(
            query.map { $0.replacing("%5B", with: "[").replacing("%5D", with: "]") } == text,
            sourceLocation: sourceLocation)
        #expect(
            form.map { $0.replacing("%5B", with: "[").replacing("%5D", with: "]") } == text ?? "",
            sourceLocation: sourceLocation)
    }

    @Test("Parameters preserve their order and repeated names")
    func order() throws {
        try expect(["b": 1, "a": 2, "b": 3, "": 4, "c": ""], gives: "b=1&a=2&b=3&=4&c=")
    }

    @Test(
        "Each array strategy encodes arrays in its format",
        arguments: [
            (.repeated, "tag=a&tag=b", "m=1&m=2&m=3"), (.brackets, "tag[]=a&tag[]=b", "m[][]=1&m[][]=2&m[][]=3"),
            (.indexed, "tag[0]=a&tag[1]=b", "m[0][0]=1&m[0][1]=2&m[1][0]=3"), (.commaSeparated, "tag=a%2Cb", nil),
        ] as [(ParameterStrategy.Arrays, String, String?)])
    func arrays(arrays: ParameterStrategy.Arrays, text: String, nested: String?) throws {
        let strategy = ParameterStrategy(arrays: arrays)
        try expect(["tag": ["a", "b"]], strategy, gives: text)
        try expect(["tag": [String](), "x": 1], strategy, gives: "x=1")
        try expect(["tag": [String]()], strategy, gives: nil)
        if let nested {
            try expect(["m": [[1, 2], [3]]], strategy, gives: nested)
        } else {
            for value in [[[1]], ["a": 1]] as [ParameterValue] {
                expectFailure(.encoding, naming: ["'m'"]) {
                    try expect(["m": [value] as ParameterValue], strategy, gives: nil)
                }
            }
        }
    }

    @Test("A comma-separated array encodes each element according to its type")
    func commas() throws {
        let strategy = ParameterStrategy(arrays: .commaSeparated, booleans: .numeric, dates: .secondsSince1970)
        try expect(
            ["m": [1, true, nil, 1.5, "a,b", .date(Date(timeIntervalSince1970: 7))] as ParameterValue], strategy,
            gives: "m=1%2C1%2C%2C1.5%2Ca%2Cb%2C7")
    }

    @Test(
        "Each nesting strategy encodes nested values in its format",
        arguments: [(.brackets, "at[lat]=1&at[p][x]=2&at[t]=a&at[t]=b"), (.dots, "at.lat=1&at.p.x=2&at.t=a&at.t=b")]
            as [(ParameterStrategy.Nesting, String)])
    func nesting(nesting: ParameterStrategy.Nesting, text: String) throws {
        try expect(
            ["at": ["lat": 1, "p": ["x": 2], "t": ["a", "b"], "e": [:], "n": nil] as ParameterValue],
            .init(nesting: nesting), gives: text)
    }

    @Test(
        "Each Boolean strategy encodes Booleans in its format",
        arguments: [(.literal, "a=true&b=false"), (.numeric, "a=1&b=0")] as [(ParameterStrategy.Booleans, String)])
    func booleans(booleans: ParameterStrategy.Booleans, text: String) throws {
        try expect(["a": true, "b": false], .init(booleans: booleans), gives: text)
    }

    @Test(
        "Each null strategy encodes nil in its format",
        arguments: [(.omitted, "a=1", nil), (.emptyValue, "q=&a=1&m[x]=", "q="), (.nameOnly, "q&a=1&m[x]", "q")]
            as [(ParameterStrategy.Nulls, String, String?)])
    func nulls(nulls: ParameterStrategy.Nulls, text: String, alone: String?) throws {
        try expect(["q": nil, "a": 1, "m": ["x": nil] as ParameterValue], .init(nulls: nulls), gives: text)
        try expect(["q": nil], .init(nulls: nulls), gives: alone)
        let none: String? = nil
        try expect(["q": none], .init(nulls: nulls), gives: alone)
    }

    @Test(
        "A number is encoded in the shortest form that converts back to the same number",
        arguments: [
            (.integer(.min), "-9223372036854775808"), (.integer(.max), "9223372036854775807"),
            (.unsigned(.max), "18446744073709551615"),
            (0.1, "0.1"), (-0.0, "0"), (1.0, "1"),
            (-1.5, "-1.5"), (1e15, "1000000000000000"), (9_007_199_254_740_991, "9007199254740991"),
            (.double(9_007_199_254_740_992), "9007199254740992"),
            (.double(9_007_199_254_740_994), "9007199254740994"), (.double(-0x1p54), "-18014398509481984"),
            (.double(0x1p55), "3.602879701896397e%2B16"), (1e21, "1e%2B21"),
            (.double(.leastNonzeroMagnitude), "5e-324"), (1.7976931348623157e308, "1.7976931348623157e%2B308"),
            (.double(0.1 + 0.2), "0.30000000000000004"), (1e-7, "1e-07"),
        ] as [(ParameterValue, String)])
    func numbers(value: ParameterValue, text: String) throws {
        try expect(["n": value], gives: "n=" + text)
        if case .double(let number) = value { #expect(Double(text.replacing("%2B", with: "+")) == number) }
    }

    @Test("Every finite number is encoded without loss")
    func numbersReadBack() {
        var random = SeededGenerator(seed: 5)
        for _ in 0..<20_000 {
            let number = Double(bitPattern: random.next())
            if number.isFinite { #expect(Double(ParameterValue.text(of: number)) == number) }
            let whole = Double(Int64.random(in: -(1 << 54)...(1 << 54), using: &random))
            #expect(ParameterValue.text(of: whole) == "\(Int64(whole))")
        }
    }

    @Test(
        "A number that is not finite is an error that names the parameter",
        arguments: [
            ["n": Double.nan], ["n": Double.infinity], ["n": -Double.infinity], ["n": Float.nan], ["n": Float.infinity],
            ["n": Decimal.nan],
            ["n": [1, Double.nan]],
            ["m": ["n": Double.nan]],
        ] as [Parameters])
    func notFinite(parameters: Parameters) throws {
        for strategy in [ParameterStrategy(), ParameterStrategy(arrays: .commaSeparated, nesting: .dots)] {
            expectFailure(.encoding, naming: ["n"]) { try expect(parameters, strategy, gives: nil) }
        }
        expectFailure(.encoding, naming: ["n"]) {
            try Request.make(.POST) {
                $0.parameters = parameters
                $0.parameterEncoding = .json
            }.urlRequest()
        }
    }

    @Test(
        "Each date strategy encodes dates in its format",
        arguments: [
            (0, "1970-01-01T00:00:00Z", "0", "0"),
            (1_795_161_600, "2026-11-20T08:00:00Z", "1795161600", "1795161600000"),
            (1_763_712_000.123, "2025-11-21T08:00:00.123Z", "1763712000.123", "1763712000123"),
            (1_795_161_599.9996, "2026-11-20T08:00:00Z", nil, "1795161600000"),
            (1_795_161_599.9994, "2026-11-20T07:59:59.999Z", nil, "1795161599999"),
            (-0.5, "1969-12-31T23:59:59.500Z", "-0.5", "-500"),
            (-1, "1969-12-31T23:59:59Z", "-1", "-1000"),
            (951_782_400, "2000-02-29T00:00:00Z", "951782400", "951782400000"),
            (253_402_300_799, "9999-12-31T23:59:59Z", "253402300799", "253402300799000"),
        ] as [(Double, String, String?, String)])
    func dates(seconds: Double, iso8601: String, secondsText: String?, millis: String) throws {
        let date = Date(timeIntervalSince1970: seconds)
        try expect(["d": date], gives: "d=" + iso8601.replacing(":", with: "%3A"))
        if let secondsText { try expect(["d": date], .init(dates: .secondsSince1970), gives: "d=" + secondsText) }
        try expect(["d": date], .init(dates: .millisecondsSince1970), gives: "d=" + millis)
        try expect(["d": date], .init(dates: .custom { "\($0.timeIntervalSince1970 == seconds)&" }), gives: "d=true%26")
    }

    @Test(
        "Dates are encoded with millisecond precision",
        arguments: [0.0, 1_763_712_000, 1_795_161_599, -1, 4_102_444_800, -62_000_000_000])
    func milliseconds(start: Double) {
        for millis in 1..<1_000 {
            let text = ParameterStrategy.Dates.iso8601.text(
                of: Date(timeIntervalSince1970: start + Double(millis) / 1_000))
            #expect(text?.suffix(5) == ".\(String(1_000 + millis).dropFirst())Z", "\(start) + \(millis) ms")
        }
    }

    @Test(
        "A date outside the range of RFC 3339 is an error that names the parameter",
        arguments: [
            .nan, .infinity, -.infinity, 1e300, -1e300, 253_402_300_800, 253_402_300_799.9996, -62_135_769_601,
        ] as [Double])
    func impossibleDates(seconds: Double) throws {
        let date = Date(timeIntervalSince1970: seconds)
        expectFailure(.encoding, naming: ["'d'"]) { try expect(["d": date], gives: nil) }
        expectFailure(.encoding, naming: ["'d'"]) { try Parameters(["d": date]).jsonData() }
        guard !seconds.isFinite else {
            return try expect(["d": date], .init(dates: .custom { _ in "x" }), gives: "d=x")
        }
        for strategy in [ParameterStrategy.Dates.secondsSince1970, .millisecondsSince1970] {
            expectFailure(.encoding, naming: ["'d'"]) { try expect(["d": date], .init(dates: strategy), gives: nil) }
        }
    }

    @Test(
        "A value at nesting level 32 is encoded, and a deeper one is an error",
        arguments: [ParameterStrategy.Arrays.repeated, .brackets, .indexed])
    func depth(arrays: ParameterStrategy.Arrays) throws {
        func nested(_ levels: Int, _ wrap: (ParameterValue) -> ParameterValue) -> Parameters {
            ["p": (1..<levels).reduce("s3cret" as ParameterValue) { value, _ in wrap(value) }]
        }
        for wrap in [{ .array([$0]) }, { .object(["k": $0]) }] as [(ParameterValue) -> ParameterValue] {
            for (levels, isWritten) in [(31, true), (32, true), (33, false), (1_000, false)] {
                let forms = [Request.ParameterEncoding.percent, .json].map { encoding in
                    Request.make(.POST) {
                        $0.parameters = nested(levels, wrap)
                        $0.parameterEncoding = encoding
                        $0.parameterStrategy.arrays = arrays
                    }
                }
                for request in forms {
                    if isWritten {
                        #expect(try request.encodedBody()?.contains("s3cret") == true)
                    } else {
                        expectFailure(.encoding, naming: ["parameter '", "32 levels"], hiding: ["s3cret"]) {
                            try request.urlRequest()
                        }
                    }
                }
            }
        }
    }

    @Test("The description of an error has at most 1,000 bytes, regardless of the names it contains")
    func longNames() throws {
        let name = String(repeating: "e\u{301}", count: 100_000)
        let values: [ParameterValue] = [
            .double(.nan), .date(.distantFuture.addingTimeInterval(1e15)), .unsupported(type: "T"),
            .object(Parameters([("a", .double(.infinity))])),
        ]
        for value in values {
            for encoding in [Request.ParameterEncoding.percent, .json] {
                let request = Request.make(.POST) {
                    $0.parameters = Parameters([(name, value)])
                    $0.parameterEncoding = encoding
                    $0.parameterStrategy.arrays = .commaSeparated
                }
                guard let error = #expect(throws: WebServiceError.self, performing: { try request.urlRequest() }) else {
                    continue
                }
                #expect(error.description.utf8.count <= 1_000)
                #expect(error.description.hasPrefix("encoding: "))
                #expect(printed(error).utf8.count < 10_000)
            }
        }
        let error = WebServiceError(WebServiceError.Code(name), name, body: Data(count: 1 << 20))
        #expect(error.description.utf8.count <= 1_000)
        #expect(error.description.utf8.count > 990)
        #expect(error.description.hasSuffix("…"))
        #expect(error.localizedDescription.utf8.count <= 1_000)
        #expect(error.message == name)
        #expect(WebServiceError(.encoding, "a").description == "encoding: a")
    }
}
