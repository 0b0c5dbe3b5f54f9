import Foundation
import Synchronization
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct RequestEncodingTests {
    // MARK: Placement of parameters

    @Test(
        "Parameters of GET, HEAD and DELETE are appended to the URL after its query and the query parameters",
        arguments: ["GET", "HEAD", "DELETE"])
    func parametersInURL(name: String) throws {
        for encoding in [Request.ParameterEncoding.percent, .json] {
            let request = Request.make(Request.Method(rawValue: name), "https://h/v1?own=0#f") {
                $0.queryParameters = ["q": 1]
                $0.parameters = ["p": 2, "q": 3]
                $0.parameterEncoding = encoding
            }
            let encoded = try request.encode()
            #expect(encoded.url == "https://h/v1?own=0&q=1&p=2&q=3")
            #expect(encoded.body == nil)
            #expect(encoded.contentType == nil)
            #expect(request.contentType == nil)
        }
    }

    @Test(
        "Parameters of all other methods are encoded in the body, and query parameters in the URL",
        arguments: ["POST", "PUT", "PATCH", "OPTIONS", "PURGE"])
    func parametersInBody(name: String) throws {
        for (encoding, body, type) in [
            (Request.ParameterEncoding.percent, "b=1&a=x+y", "application/x-www-form-urlencoded"),
            (.json, #"{"a":"x y","b":1}"#, "application/json"),
        ] {
            let request = Request.make(Request.Method(rawValue: name)) {
                $0.queryParameters = ["q": "x y"]
                $0.parameters = ["b": 1, "a": "x y"]
                $0.parameterEncoding = encoding
            }
            let encoded = try request.encode()
            #expect(encoded.url == "https://h/v1?q=x%20y")
            #expect(encoded.body == Data(body.utf8))
            #expect(encoded.contentType == type)
            #expect(request.contentType == type)
        }
    }

    @Test("Query parameters and a body can be combined", arguments: ["POST", "DELETE"])
    func queryAndBody(name: String) throws {
        let request = Request.make(Request.Method(rawValue: name)) {
            $0.queryParameters = ["q": 1]
            $0.formParameters = ["f": 2]
        }
        #expect(try request.encodedQuery() == "q=1")
        #expect(try request.encodedBody() == "f=2")
    }

    @Test(
        "Empty parameters add neither a question mark nor a body",
        arguments: [nil, [:], ["q": nil], ["q": [Int]()]] as [Parameters?])
    func noParameters(parameters: Parameters?) throws {
        let get = try Request.make {
            $0.queryParameters = parameters
            $0.parameters = parameters
        }.encode()
        #expect(get.url == "https://h/v1")
        #expect(get.body == nil)
        let post = try Request.make(.POST) { $0.parameters = parameters }.encode()
        #expect(post.url == "https://h/v1")
        #expect(post.body?.isEmpty != false)
    }

    @Test("Parameters encoded as JSON preserve their types, nil becomes null, and dates become strings")
    func json() throws {
        let parameters: Parameters = [
            "s": "a/b\u{0}é", "i": Int64.min, "u": UInt64.max, "d": 0.1, "b": true, "n": nil, "z": -0.0,
            "t": Date(timeIntervalSince1970: 0.5),
            "a": [1, 2], "o": ["k": [["x": 1]]],
        ]
        let body = try Request.make(.POST) {
            $0.parameters = parameters
            $0.parameterEncoding = .json
        }.encodedBody()
        #expect(
            body
                == #"{"a":[1,2],"b":true,"d":0.1,"i":-9223372036854775808,"n":null,"o":{"k":[{"x":1}]},"s":"a\/b\u0000é","#
                + #""t":"1970-01-01T00:00:00.500Z","u":18446744073709551615,"z":-0}"#
        )
    }

    @Test(
        "A repeated name is an error in JSON parameters at any depth",
        arguments: [
            ["n": 1, "n": 2], ["o": ["n": 1, "n": 2] as ParameterValue], ["a": [["n": 1, "n": nil]] as ParameterValue],
        ]
            as [Parameters])
    func jsonTwice(parameters: Parameters) {
        expectFailure(.encoding, naming: ["'n'", "twice"]) { try parameters.jsonData() }
    }

    // MARK: Conflicts

    @Test(
        "Of a body and body parameters, the one set last is used",
        arguments: [Request.ParameterEncoding.percent, .json])
    func conflict(encoding: Request.ParameterEncoding) throws {
        let bodies: [(String, (inout Request) throws -> Void)] = [
            ("x", { $0.body = Data("x".utf8) }), ("", { $0.body = Data() }),
            ("a=x", { $0.formParameters = ["a": "x"] }),
            (#"["x"]"#, { try $0.serialize(json: ["x"]) }),
        ]
        for (text, setBody) in bodies {
            var request = try Request.make(.POST) {
                try setBody(&$0)
                $0.parameters = ["p": "1"]
                $0.parameterEncoding = encoding
            }
            #expect(try request.encodedBody() == (encoding == .json ? #"{"p":"1"}"# : "p=1"))
            request.parameters = [:]
            #expect(try request.encodedBody() == text)
            request.method = .DELETE
            request.parameters = ["p": 1]
            #expect(try request.encodedQuery() == "p=1")
        }
    }

    @Test(
        "A body in a GET, HEAD or TRACE request is an error unless it is empty",
        arguments: ["GET", "HEAD", "TRACE"])
    func bodyForbidden(name: String) throws {
        let method = Request.Method(rawValue: name)
        let bodies: [(inout Request) throws -> Void] = [
            { $0.body = Data("s3cret".utf8) }, { $0.formParameters = ["a": "s3cret"] },
            { try $0.serialize(json: "s3cret") },
        ]
        for setBody in bodies {
            expectFailure(.encoding, naming: [name], hiding: ["s3cret"]) {
                try Request.make(method) { try setBody(&$0) }.urlRequest()
            }
        }
        let provided = Request.make(method) { $0.setBodyProvider { Data() } }
        expectFailure(.encoding, naming: [name]) { try provided.encode(provided: Data("x".utf8)) }
        #expect(try Request.make(method) { $0.body = Data() }.encodedBody() == "")
        #expect(try Request.make(.DELETE) { $0.body = Data("x".utf8) }.encodedBody() == "x")
    }

    // MARK: Encoders

    @Test("The query parameter encoder receives the URL and all its parameters in order and returns the URL to use")
    func queryParameterEncoder() throws {
        let seen = Collected<String>()
        let request = Request.make(.GET, "https://H/v1?own=0#f") {
            $0.queryParameters = ["b": 1]
            $0.parameters = ["a": [1, 2]]
            $0.queryParameterEncoder = { url, parameters in
                seen.add("\(url?.absoluteString ?? "") \(parameters.map { "\($0.key)=\($0.value)" })")
                return URL(string: "HTTPS://Other/p//a/../é?q=%zz+x#frag")
            }
        }
        #expect(try request.urlRequest().url?.absoluteString == "https://other/p//%C3%A9?q=%25zz+x")
        #expect(seen.values == [#"https://h/v1?own=0 ["b=1", "a=[1, 2]"]"#])
        #expect(request.url?.absoluteString == "https://h/v1?own=0")
    }

    @Test("The query parameter encoder is not called if the URL has no parameters")
    func queryParameterEncoderNotAsked() throws {
        for parameters in [nil, [:]] as [Parameters?] {
            let request = Request.make(.POST) {
                $0.queryParameters = parameters
                $0.parameters = ["p": 1]
                $0.queryParameterEncoder = { _, _ in nil }
            }
            #expect(try request.encode().url == "https://h/v1")
        }
    }

    @Test(
        "The result of the query parameter encoder is validated like any URL",
        arguments: [
            (nil, "encoding"), ("ftp://h/s3cret", "invalidURL"), ("https://user:s3cret@h/", "invalidURL"),
            ("/s3cret", "invalidURL"),
            ("file:///s3cret", "invalidURL"), ("https://h:0/s3cret", "invalidURL"),
        ] as [(String?, String)])
    func queryParameterEncoderResult(result: String?, code: String) {
        let request = Request.make {
            $0.queryParameters = ["q": "s3cret"]
            $0.queryParameterEncoder = { _, _ in result.flatMap { URL(string: $0) } }
        }
        expectFailure(WebServiceError.Code(code), hiding: ["s3cret"]) { try request.urlRequest() }
    }

    @Test("encodeURL appends parameters to the query parameters and uses the encoder of the request, if any")
    func encodeURL() throws {
        var request = Request.make(.POST, "https://h/v1?own=0#f")
        #expect(try request.encodeURL(adding: ["a": "x y"]).absoluteString == "https://h/v1?own=0&a=x%20y")
        request.queryParameters = ["q": 1]
        #expect(try request.encodeURL(adding: ["a": 2]).absoluteString == "https://h/v1?own=0&q=1&a=2")
        #expect(try request.encodeURL(adding: [:]).absoluteString == "https://h/v1?own=0&q=1")
        request.queryParameterEncoder = { _, parameters in URL(string: "https://h/\(parameters.map(\.key).joined())") }
        #expect(try request.encodeURL(adding: ["a": 2]).absoluteString == "https://h/qa")
        request.queryParameterEncoder = { _, _ in nil }
        expectFailure(.encoding) { try request.encodeURL(adding: ["a": 2]) }
        expectFailure(.invalidURL) { try Request(url: "ftp://h").encodeURL(adding: [:]) }
        expectFailure(.encoding, naming: ["'a'"]) { try Request.make().encodeURL(adding: ["a": Double.nan]) }
    }

    @Test("encodeBody uses the parameter encoding of the request, regardless of its method")
    func encodeBody() throws {
        var request = Request.make(.GET) { $0.formParametersAllowedCharacters = CharacterSet(charactersIn: "/ab") }
        #expect(try request.encodeBody(["a": "/b c"]) == Data("a=/b+%63".utf8))
        #expect(try request.encodeBody([:]) == Data())
        request.parameterEncoding = .json
        #expect(try request.encodeBody(["b": 1, "a": "/"]) == Data(#"{"a":"\/","b":1}"#.utf8))
        #expect(try request.encodeBody([:]) == Data("{}".utf8))
        expectFailure(.encoding, naming: ["'a'"]) { try request.encodeBody(["a": Double.nan]) }
    }

    // MARK: Timeouts

    @Test(
        "A timeout that is not a positive finite number is an error",
        arguments: [.zero, .seconds(-1), .nanoseconds(-1), .seconds(Int64.min)] as [Duration])
    func timeout(timeout: Duration) {
        expectFailure(.encoding, naming: ["timeout"]) { try Request.make { $0.options.timeout = timeout }.urlRequest() }
    }

    @Test("A deadline of zero or less is an error, and any positive deadline is valid")
    func deadline() throws {
        for deadline in [Duration.zero, .seconds(-1), .nanoseconds(-1), .seconds(Int64.min)] {
            expectFailure(.encoding, naming: ["deadline"]) {
                try Request.make { $0.options.deadline = deadline }.urlRequest()
            }
        }
        for deadline in [Duration(secondsComponent: 0, attosecondsComponent: 1), .seconds(Int64.max)] {
            #expect(throws: Never.self) { try Request.make { $0.options.deadline = deadline }.urlRequest() }
        }
        for (timeout, seconds) in [
            (Duration.nanoseconds(1) / 1_000_000_000, 1e-18), (.milliseconds(500), 0.5),
            (.seconds(Int64.max), 1e9),
        ] {
            #expect(try Request.make { $0.options.timeout = timeout }.urlRequest().timeoutInterval == seconds)
        }
        #expect(Request.make().options.idleTimeout == .seconds(60))
        #expect(Request.make().options.requestDeadline == .seconds(600))
    }

    @Test("Each duration of the options must be positive")
    func positiveDurations() throws {
        let options: [WritableKeyPath<Request.Options, Duration?>] = [
            \.timeout, \.attemptTimeout, \.connectTimeout, \.expectsContinue, \.deadline,
        ]
        for option in options {
            for duration in [Duration.zero, .seconds(-1)] {
                expectFailure(.encoding, naming: ["expectsContinue"]) {
                    try Request.make { $0.options[keyPath: option] = duration }.urlRequest()
                }
            }
            _ = try Request.make { $0.options[keyPath: option] = .seconds(1) }.urlRequest()
        }
    }

    @Test("A deadline of a service must be positive")
    func serviceDeadline() {
        expectFailure(.encoding, naming: ["deadline"]) {
            try Request.make { request in
                var options = request.options
                options.deadline = .zero
                request.options = options.inherited
            }.urlRequest()
        }
    }

    @Test("An encoding error contains its request")
    func errorHoldsRequest() {
        let error = expectFailure(.encoding) {
            try Request.make(.PUT, "https://h/thing") { $0.options.timeout = .zero }.encode()
        }
        #expect(error?.request?.description == "PUT https://h/thing")
    }

    @Test("The description contains neither the query nor path parameters")
    func descriptionWithoutSecrets() throws {
        let request = Request.make(.GET, "https://h/a;jsessionid=canary;v=1/b;v?token=canary")
        #expect(request.description == "GET https://h/a/b")
        #expect(try request.encode().description == request.description)
    }
}
