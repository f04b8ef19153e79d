import Testing

/// Records what does not hold, at the line of the property that says so.
/// - Parameter file: of the properties, in this target.
func issues(in file: String) -> @Sendable (_ what: String, _ line: Int) -> Void {
    { what, line in
        let name = file.split(separator: "/").last ?? ""
        Issue.record(
            "\(what)",
            sourceLocation: SourceLocation(
                fileID: "DiskURLCacheTests/\(name)", filePath: "Tests/DiskURLCacheTests/\(file)", line: line, column: 1)
        )
    }
}
