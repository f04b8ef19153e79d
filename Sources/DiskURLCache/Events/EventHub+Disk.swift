extension EventHub {
    func report(_ event: DiskEvent) {
        switch event {
        case .becameOwner: break
        case .evicted(_, let bytes):
            count { $0.evictions += 1 }
            emit(.evicted(entries: 1, bytesOnDisk: bytes))
        case .notUpdated(_, let reason):
            emit(.notStored(url: nil, reason: reason))
        case .removedCorruptRecord, .rejectedIndex: emit(.problem(DiskURLCache.Error(.damaged)))
        case .cannotDelete(let errno), .cannotList(let errno): emit(.problem(DiskURLCache.Error(.io, errno: errno)))
        case .unavailable(let error): emit(.problem(error))
        }
    }
}

extension DiskURLCache.Statistics {
    mutating func countHit(_ layer: DiskURLCache.Layer, bytes: Int) {
        switch layer {
        case .memory: memoryHits += 1
        default: diskHits += 1
        }
        bytesSaved = bytesSaved.addingSaturated(bytes)
    }
}
