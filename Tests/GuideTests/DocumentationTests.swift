import Foundation
import TestSupport
import Testing

/// Compares the pages of the documentation with the snippets that are compiled and run.
@Suite("Documentation", .permit)
struct DocumentationTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
    }

    /// Returns the lines without indentation and without empty ones.
    private func lines(_ text: some StringProtocol) -> [String] {
        text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    private func swiftBlocks(_ page: String) -> [[String]] {
        page.components(separatedBy: "```swift\n").dropFirst().compactMap {
            $0.components(separatedBy: "\n```").first.map(lines)
        }
    }

    /// Returns the Swift snippets of the Guide after the first one of each chapter, without imports.
    private func laterBlocks(_ guide: String) -> [[String]] {
        guide.components(separatedBy: "\n## ").flatMap { swiftBlocks($0).dropFirst() }.map { block in
            block.filter { !$0.hasPrefix("import ") }
        }
    }

    /// Returns the paths below a folder that have an extension, relative to the package.
    private static func paths(below folder: String, _ fileExtension: String) -> [String] {
        let files = FileManager.default.enumerator(
            at: root.appendingPathComponent(folder), includingPropertiesForKeys: nil)
        return (files?.allObjects ?? []).compactMap { $0 as? URL }.filter { $0.pathExtension == fileExtension }.map {
            String($0.standardizedFileURL.path.dropFirst(root.standardizedFileURL.path.count + 1))
        }.filter { !$0.contains("/.build/") }.sorted()
    }

    /// The pages that describe how to migrate from another library.
    private static let migrations = [
        "Documentation/Migrating-from-URLSession.md", "Documentation/Migrating-from-AsyncHTTPClient.md",
        "Documentation/Migrating-from-Alamofire.md", "Documentation/Migrating-from-Moya.md",
        "Documentation/Migrating-from-Get.md", "Documentation/Migrating-from-earlier-libraries.md",
    ]

    /// The pages with snippets: those of the repository and the catalogs of the reference site.
    ///
    /// `scripts/test` builds and runs the program of `README.md`, and `scripts/lib/chapters` those with
    /// which the chapters of `Guide.md` begin.
    private static let pages =
        ["Guide.md", "Cookbook.md"] + migrations
        + paths(below: "Sources", "md").filter { $0.contains(".docc/") }

    @Test("Every Swift snippet of a page is compiled and run, word for word", arguments: pages)
    func snippetsAreCompiled(page: String) throws {
        let sources = Self.paths(below: "Tests/GuideTests", "swift") + Self.paths(below: "Examples", "swift")
        let compiled = try sources.map { lines(try text($0)) }
        let blocks = page == "Guide.md" ? laterBlocks(try text(page)) : swiftBlocks(try text(page))
        #expect(page.contains(".docc/") || !blocks.isEmpty)
        for block in blocks {
            let isThere = compiled.contains { source in
                source.indices.contains { source[$0...].starts(with: block) }
            }
            #expect(isThere, "not among the compiled snippets: \(block.joined(separator: "\n"))")
        }
    }

    @Test("Code of a page or of a documentation comment fits the reference site: at most 96 columns")
    func codeFits() throws {
        let articles = Self.pages + ["README.md", "CONTRIBUTING.md", "SECURITY.md", "Documentation/Testing.md"]
        let sources = Self.paths(below: "Sources", "swift").filter { !$0.contains(".docc/") }
        var wide: [String] = []
        for page in articles + sources {
            var isCode = false
            for line in try text(page).split(separator: "\n") {
                let comment = page.hasSuffix(".md") ? line : line.drop { $0 == " " }.dropFirst(4)
                if comment.hasPrefix("```") {
                    isCode.toggle()
                } else if isCode && comment.count > 96 {
                    wide.append("\(page): \(comment)")
                }
            }
        }
        #expect(wide == [])
    }

    @Test(
        "Every line of the code of a tutorial is in a source of its package, in the same order",
        arguments: paths(below: "Sources", "swift").filter { $0.contains(".docc/") })
    func tutorialsAreCompiled(path: String) throws {
        let code = lines(try text(path))
        let sources = try Self.paths(below: "Examples/BreweryKit", "swift").map { lines(try text($0)) }
        let isThere = sources.contains { source in
            var rest = source[...]
            return code.allSatisfy { line in
                guard let index = rest.firstIndex(of: line) else { return false }
                rest = rest[(index + 1)...]
                return true
            }
        }
        #expect(!code.isEmpty)
        #expect(isThere)
    }

    @Test(
        "Every relative link and every anchor of a page has a target",
        arguments: [
            "Guide.md", "Cookbook.md", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md",
            "Documentation/Testing.md", "Documentation/FoundationDefects.md", "Documentation/Concurrency.md",
            "Documentation/Diagrams.md",
        ]
            + migrations + paths(below: "Sources", "md").filter { $0.contains(".docc/") })
    func links(page: String) throws {
        let folder = page.split(separator: "/").dropLast().map { $0 + "/" }.joined()
        let inline = try text(page).matches(of: /\]\(([^)]+)\)/).map { String($0.1) }
        let definitions = try text(page).matches(of: /(?m)^\[([a-z-]+)\]: (.+)$/)
        let names = Set(try text(page).matches(of: /\]\[([a-z-]+)\]/).map { String($0.1) })
        #expect(try !text(page).contains("doc:"), "a code host does not follow links of DocC")
        #expect(names == Set(definitions.map { String($0.1) }))
        for target in inline + definitions.map({ String($0.2) }) {
            if target.contains("://") { continue }
            let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let file = parts[0].isEmpty ? page : folder + parts[0]
            #expect(FileManager.default.fileExists(atPath: Self.root.appendingPathComponent(file).path), "\(target)")
            if parts.count > 1 {
                #expect(try anchors(text(file)).contains(parts[1]), "\(target)")
            }
        }
    }

    /// Returns the anchors of the headings of a page.
    private func anchors(_ text: String) -> Set<String> {
        Set(
            text.split(separator: "\n").filter { $0.hasPrefix("#") }.map { heading in
                heading.drop { $0 == "#" || $0 == " " }.lowercased().filter {
                    $0.isLetter || $0.isNumber || $0 == " " || $0 == "-"
                }
                .replacingOccurrences(of: " ", with: "-")
            })
    }

    @Test("SECURITY.md names suites that exist, and links an article for each promise")
    func security() throws {
        let files = FileManager.default.enumerator(
            at: Self.root.appendingPathComponent("Tests"), includingPropertiesForKeys: nil)
        let suites = Set(
            (files?.allObjects ?? []).compactMap { ($0 as? URL)?.deletingPathExtension().lastPathComponent })
        let page = try text("SECURITY.md")
        let named = page.matches(of: /`([A-Za-z0-9]+Tests)`/).map { String($0.1) }
        #expect(named.count > 20)
        #expect(named.filter { !suites.contains($0) } == [])
        let promises = page.components(separatedBy: "\n## ").first { $0.hasPrefix("What is promised") } ?? ""
        let rows = promises.split(separator: "\n").filter { $0.hasPrefix("| ") && $0.contains("Tests`") }.map {
            $0.split(separator: "|")
        }
        #expect(rows.count > 10)
        #expect(rows.filter { !$0[2].contains(".docc/") } == [])
        #expect(page.split(separator: "\n", omittingEmptySubsequences: false).count <= 150)
    }
}
