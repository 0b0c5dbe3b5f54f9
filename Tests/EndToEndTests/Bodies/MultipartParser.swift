import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// An independent parser of multipart bodies: `python-multipart`, run by the Python that
/// `WEBSERVICE_PYTHON` names.
enum MultipartParser {
    struct Failure: Error, CustomStringConvertible { let description: String }

    /// A part, as read or as expected.
    struct Part: Equatable, Codable {
        /// The bytes in Base64, like those of the content.
        let name: String
        let fileName: String?
        let type: String?
        let content: String

        /// Creates the expected part. Its names are escaped as in HTML.
        init(_ name: String, _ fileName: String?, _ type: String?, _ content: Data) {
            self.name = Data(Self.escaped(name)).base64EncodedString()
            self.fileName = fileName.map { Data(Self.escaped($0)).base64EncodedString() }
            self.type = type
            self.content = content.base64EncodedString()
        }

        private static func escaped(_ name: String) -> [UInt8] {
            name.utf8.flatMap { byte in
                switch byte {
                case 0x0A: Array("%0A".utf8)
                case 0x0D: Array("%0D".utf8)
                case 0x22: Array("%22".utf8)
                default: [byte]
                }
            }
        }
    }

    static let python = ProcessInfo.processInfo.environment["WEBSERVICE_PYTHON"]
    // Without the parser, the test is skipped.
    static let isThere = python.map { (try? run($0, ["-c", "import python_multipart"])) != nil } ?? false
    static let comment: Comment = "WEBSERVICE_PYTHON must name a Python with python-multipart"

    /// Reads the bodies of requests, one after another.
    static func read(_ requests: [ReceivedRequest], in folder: URL) async throws -> [[Part]] {
        for (number, request) in requests.enumerated() {
            try request.body.write(to: folder.appendingPathComponent("\(number).body"))
            try Data((request.headers[.contentType] ?? "").utf8).write(
                to: folder.appendingPathComponent("\(number).type"))
        }
        guard let python else { throw Failure(description: "WEBSERVICE_PYTHON is not set") }
        let result = folder.appendingPathComponent("result.json")
        try await blocking { try run(python, ["-c", script, folder.path, "\(requests.count)", result.path]) }
        return try JSONDecoder().decode([[Part]].self, from: Data(contentsOf: result))
    }

    private static func run(_ executable: String, _ arguments: [String]) throws {
        let process = ChildProcess(executable, arguments, input: .null)
        try process.run()
        let status = process.waitUntilExit()
        guard status == 0 else { throw Failure(description: "the parser ended with status \(status)") }
    }

    /// Names are read from the raw header field and compared with the result of the parser, except
    /// for names with a backslash, which the parser treats as an escape.
    private static let script = #"""
        import json, re, sys
        from base64 import b64encode
        from python_multipart.multipart import MultipartParser, parse_options_header

        folder, count, result = sys.argv[1], int(sys.argv[2]), sys.argv[3]

        def parse(body, boundary):
            parts, field, value, ended = [], bytearray(), bytearray(), []
            def begin():
                parts.append({"headers": [], "content": bytearray()})
            def header_end():
                parts[-1]["headers"].append((bytes(field).decode("ascii"), bytes(value)))
                field.clear()
                value.clear()
            callbacks = {
                "on_part_begin": begin,
                "on_part_data": lambda data, start, end: parts[-1]["content"].extend(data[start:end]),
                "on_header_field": lambda data, start, end: field.extend(data[start:end]),
                "on_header_value": lambda data, start, end: value.extend(data[start:end]),
                "on_header_end": header_end,
                "on_end": lambda: ended.append(True),
            }
            parser = MultipartParser(boundary, callbacks, max_header_size=1 << 20)
            for start in range(0, len(body), 997):
                parser.write(body[start : start + 997])
            parser.finalize()
            assert ended == [True]
            return parts

        def described(part):
            fields = dict(part["headers"])
            assert len(fields) == len(part["headers"]) and set(fields) <= {"Content-Disposition", "Content-Type"}
            match = re.fullmatch(rb'form-data; name="([^"]*)"(?:; filename="([^"]*)")?', fields["Content-Disposition"], re.DOTALL)
            name, file_name = match.groups()
            kind, options = parse_options_header(fields["Content-Disposition"])
            assert kind == b"form-data"
            for given, key in ((name, b"name"), (file_name, b"filename")):
                if given is None or b"\\" not in given:
                    assert options.get(key) == given, (options, given)
            described = {"name": b64encode(name).decode(), "content": b64encode(part["content"]).decode()}
            if file_name is not None:
                described["fileName"] = b64encode(file_name).decode()
            if "Content-Type" in fields:
                described["type"] = fields["Content-Type"].decode("ascii")
            return described

        bodies = []
        for number in range(count):
            kind, options = parse_options_header(open(f"{folder}/{number}.type", "rb").read())
            assert kind == b"multipart/form-data"
            bodies.append([described(part) for part in parse(open(f"{folder}/{number}.body", "rb").read(), options[b"boundary"])])
        json.dump(bodies, open(result, "w"))
        """#
}
