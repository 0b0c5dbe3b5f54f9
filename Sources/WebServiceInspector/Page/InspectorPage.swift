/// The page of the inspector, which is one HTML document without external resources.
///
/// The page receives data only as JSON and shows it only as text nodes and images, so no exchange
/// can add markup or code. The files of the page are embedded in the program as bytes.
enum InspectorPage {
    /// The document with the style sheets and the scripts, which share one scope.
    private static let template = text(PackageResources.inspector_html)
        .replacing("{style}\n", with: styles.map(text).joined())
        .replacing("{script}\n", with: scripts.map(text).joined())

    private static let styles = [
        PackageResources.inspector_css, PackageResources.details_css, PackageResources.bodies_css,
    ]

    private static let scripts = [
        PackageResources.format_js, PackageResources.markup_js, PackageResources.bodies_js, PackageResources.keep_js,
        PackageResources.row_js, PackageResources.list_js, PackageResources.filter_js, PackageResources.help_js,
        PackageResources.waterfall_js, PackageResources.search_js, PackageResources.import_js,
        PackageResources.export_js, PackageResources.send_js, PackageResources.code_js, PackageResources.timeline_js,
        PackageResources.overview_js, PackageResources.detail_js, PackageResources.keyboard_js,
        PackageResources.connection_js,
    ]

    /// Returns the page as one HTML document.
    ///
    /// - Parameter nonce: The nonce for the style sheet and the script in the content security
    ///   policy.
    static func document(nonce: String) -> String {
        template.replacing("{nonce}", with: nonce)
    }

    private static func text(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self)
    }
}
