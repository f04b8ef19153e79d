extension EventHub {
    func report(_ event: DiskEvent) {
        switch event {
        // The store knows what it wrote, and emits an event with the URL.
        case .stored, .dropped, .becameMaintainer: break
        case .evicted(_, let bytes):
            count { $0.evictions += 1 }
            emit(.evicted(entries: 1, bytes: bytes))
        case .notUpdated(_, let reason):
            emit(.notStored(url: nil, reason: DiskURLCache.Reason(reason)))
        case .rebuiltIndex(.missing): break
        case .removedCorruptRecord, .rebuiltIndex(.rejected): emit(.problem(DiskURLCache.Error(.damaged)))
        case .cannotDelete(let errno): emit(.problem(DiskURLCache.Error(.io, errno: errno)))
        case .unavailable(let error): emit(.problem(DiskURLCache.Error(error)))
        }
    }
}

extension DiskURLCache.Reason {
    init(_ reason: DiskEvent.DropReason) {
        switch reason {
        case .tooLarge(let bytes, let limit): self = .tooLarge(bytes: bytes, limit: limit)
        case .notRepresentable: self = .malformed
        case .failed(let errno): self = .diskFailed(errno: errno)
        case .unavailable: self = .diskFailed(errno: 0)
        }
    }
}

extension DiskURLCache.Error {
    init(_ error: DiskStoreError) {
        switch error {
        case .cannotMakeDirectory(let path, let errno): self.init(.notWritable, path: path, errno: errno)
        case .notADirectory(let path), .symbolicLink(let path): self.init(.obstructed, path: path)
        case .notReadable(let path, let errno): self.init(.notReadable, path: path, errno: errno)
        case .notWritable(let path, let errno): self.init(.notWritable, path: path, errno: errno)
        case .otherOwner(let path, let user): self.init(.otherOwner, path: path, userID: user)
        case .writableByOthers(let path, _): self.init(.writableByOthers, path: path)
        case .notACache(let path, let errno): self.init(.notACache, path: path, errno: errno)
        }
    }
}

extension DiskURLCache.Statistics {
    mutating func countHit(_ layer: DiskURLCache.Layer, bytes: Int) {
        switch layer {
        case .memory: memoryHits += 1
        case .disk, .fallback: diskHits += 1
        }
        bytesSaved += bytes
    }
}
