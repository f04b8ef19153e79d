import Foundation

extension DiskURLCache {
    /// An answer whose body is read once, piece by piece as it arrives: from
    /// ``DiskURLCache/DiskURLCache/bytes(for:fallback:session:progress:)`` or
    /// `DiskURLCache.load(_:through:variant:progress:redirect:)`.
    ///
    /// ```swift no-check
    /// for try await piece in stream { … }
    /// ```
    ///
    /// Read the body to its end: if the reader stops, the load is cancelled and the answer may not be stored. A reader
    /// that is slower than the network does not fill the memory: a transport of the app is paused while more than 1 MB
    /// is unread, and what a session has received meanwhile waits in a file. Other loads that wait for the same answer
    /// then send their own requests.
    public struct ResponseStream: AsyncSequence, AsyncIteratorProtocol, Sendable {
        /// The head as Foundation's object, made when it is first needed. If the transport delivered an object and no
        /// `Cache-Status` was added, it is that object.
        public var response: HTTPURLResponse {
            guard let response = delivered.response as? HTTPURLResponse else {
                preconditionFailure("Foundation makes no response with status \(delivered.status).")
            }
            return response
        }
        /// The report of the load so far. The outcome is final unless the body fails; the number of bytes, the
        /// duration, and the reason why the answer was not stored are final once the body has ended.
        public var report: Report { reader.report }

        package let delivered: DeliveredHead
        let reader: LoadReader
        private let progress: BodyProgress?

        /// Returns when the head is known.
        package init(_ reader: LoadReader, progress: Progress? = nil) async throws {
            self.reader = reader
            let cancelling = try progress.map { try BodyProgress($0, of: reader) }
            delivered = try await reader.head()
            cancelling?.expect(reader.expectedLength(delivered))
            self.progress = cancelling
        }

        /// The next piece of the body, nil at its end. Throws the error of the transport, `CancellationError`, or
        /// ``Reason/wrongDigest`` if ``Configuration/wrongDigest`` says so. A body that ends without an error is
        /// complete, as far as the transport knows: one that is shorter than its `Content-Length` is not stored.
        public func next() async throws -> Data? {
            try endIfCancelled()
            let piece = try await reader.next()
            progress?.note(piece?.count)
            return piece
        }

        private func endIfCancelled() throws {
            // Foundation calls the handler of a progress some time after it was cancelled.
            guard Task.isCancelled || progress?.isCancelled == true else { return }
            reader.cancel()
            throw CancellationError()
        }

        /// The stream itself: an iterator continues after the last piece that any of them has read.
        public func makeAsyncIterator() -> ResponseStream { self }

        /// Writes what was not read yet of the body to a new file: see
        /// ``DiskURLCache/DiskURLCache/file(for:at:replacingFile:resuming:fallback:session:progress:)``, which also
        /// says what it throws.
        public func write(to url: URL, replacingFile: Bool = false) async throws {
            try await write(to: DestinationFile(url, replacingFile: replacingFile))
        }

        func write(to file: DestinationFile) async throws {
            try await copy(to: file)
            try file.publish()
        }

        /// Writes what was not read yet of the body behind what the file has.
        func copy(to file: DestinationFile) async throws {
            progress?.begin(behind: file.length)
            while true {
                try endIfCancelled()
                let count = try await reader.copyNext(to: file)
                progress?.note(count)
                guard count != nil else { break }
            }
        }
    }
}

extension DiskURLCache.ResponseStream: PrintedByDescription {
    /// The report of the load so far, in one line.
    package var printedText: String { report.description }
}

/// Counts the bytes of a body that its reader has taken, in a `Progress` of the app.
private final class BodyProgress: @unchecked Sendable {
    // @unchecked: `Progress` may be used from any thread, but Foundation on Linux does not say so. One reader at a time
    // counts.
    private let progress: Progress

    /// Cancelling the progress cancels the load. If it was cancelled before, this throws, whether the head is there yet
    /// or not; the load ends with its reader.
    init(_ progress: Progress, of reader: LoadReader) throws {
        self.progress = progress
        progress.totalUnitCount = -1
        progress.completedUnitCount = 0
        progress.cancellationHandler = { [weak reader] in reader?.cancel() }
        if progress.isCancelled { throw CancellationError() }
    }

    var isCancelled: Bool { progress.isCancelled }

    func expect(_ length: Int?) {
        if let length { progress.totalUnitCount = Int64(length) }
    }

    /// The body is the rest of a file that has so many bytes.
    func begin(behind bytes: Int) {
        guard bytes > 0 else { return }
        progress.completedUnitCount += Int64(bytes)
        // The length is the server's word.
        let total = progress.totalUnitCount
        if total >= 0 { progress.totalUnitCount = total.addingSaturated(Int64(bytes)) }
    }

    /// - Parameter bytes: of a piece; nil at the end of the body.
    func note(_ bytes: Int?) {
        if let bytes {
            progress.completedUnitCount += Int64(bytes)
        } else {
            progress.totalUnitCount = progress.completedUnitCount
            progress.cancellationHandler = nil
        }
    }
}
