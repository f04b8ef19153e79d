/// Whether this cache maintains its directory, or is secondary to another cache, of this process or another, that does.
/// Confined to `DiskStore.io`.
struct Role {
    private enum Kind {
        case undecided
        case maintainer(MaintainerLock)
        case secondary
    }

    private var kind = Kind.undecided
    private var isGivenUp = false
    private var nextElection = 0.0

    var isMaintainer: Bool {
        if case .maintainer = kind { true } else { false }
    }

    /// Tries to become the maintainer, at most once a second unless `now`. True when that happened just now.
    mutating func elect(_ store: DiskStore, directory: FileIdentity, now: Bool) -> Bool {
        if isMaintainer || isGivenUp { return false }
        let time = MonotonicTime.seconds
        guard now || time >= nextElection else { return false }
        nextElection = time + 1
        switch MaintainerLock.acquire(store.files, store.paths, identity: directory, for: store) {
        case .acquired(let lock):
            kind = .maintainer(lock)
            return true
        case .taken, .failed:
            kind = .secondary
            return false
        }
    }

    /// Lets others maintain until `reclaim`.
    mutating func giveUp(_ files: any FileSystem) {
        if case .maintainer(let lock) = kind { lock.release(files) }
        kind = .secondary
        isGivenUp = true
    }

    /// Ends being the maintainer until the next election, which may come at once: the directory is another one, or a pass is over.
    mutating func rest(_ files: any FileSystem) {
        if case .maintainer(let lock) = kind { lock.release(files) }
        kind = .undecided
        nextElection = 0
    }

    mutating func reclaim() {
        isGivenUp = false
        nextElection = 0
    }
}
