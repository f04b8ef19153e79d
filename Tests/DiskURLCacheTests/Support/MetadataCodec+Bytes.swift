@testable import DiskURLCache

extension MetadataCodec {
    /// The bytes by themselves.
    static func encode(_ metadata: EntryMetadata, keepsURL: Bool) -> [UInt8]? {
        var writer = ByteWriter()
        return write(metadata, to: &writer, keepsURL: keepsURL) ? writer.finish() : nil
    }
}
