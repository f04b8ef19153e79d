import Foundation

/// The page of `urlcache report`: markup, style, script (the files in `Page`) and data in one file, which loads nothing
/// from the network.
enum ReportPage {
    static func html(_ data: ReportData) throws -> String {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
        <title>Cache report</title>
        <style>
        \(text(PackageResources.page_css))</style>
        </head>
        <body>
        \(text(PackageResources.page_html))<script>
        "use strict";
        const data = \(try json(data));
        \(text(PackageResources.page_js))</script>
        </body>
        </html>

        """
    }

    static func json(_ data: ReportData) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // URLs and header values come from servers: a "<" in them must not end the script element, and a control
        // character must not change what a terminal or an editor shows of the file.
        return escapingControls(try encoder.encode(data)).replacingOccurrences(of: "<", with: "\\u003c")
    }

    private static func text(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self)
    }
}
