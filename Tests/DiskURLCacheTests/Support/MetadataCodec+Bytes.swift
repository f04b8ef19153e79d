@testable import DiskURLCache

extension MetadataCodec {
    /// The encoded bytes, without a writer.
    static func encode(_ metadata: EntryMetadata, keepsURL: Bool) -> [UInt8]? {
        var writer = ByteWriter()
        return write(metadata, to: &writer, keepsURL: keepsURL) ? writer.finish() : nil
    }
}
