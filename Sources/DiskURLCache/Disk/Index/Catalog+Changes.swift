/// What the changes that other caches report mean for the index.
extension Catalog {
    /// Another cache has reported a change: the index may not agree with the files of one key, or of all keys.
    func note(_ change: DirectoryChange) {
        let isOwner = state.isOwner
        switch change {
        case .storing(let key):
            if isOwner { beginSharing(key) }
            addName(key)
        case .stored(let key):
            if isOwner { requestExamination(of: key) }
            addName(key)
            endSharing(key)
        case .removed(let key):
            if isOwner { requestExamination(of: key) }
        case .removedResource(let resource):
            for row in read({ $0.rows(ofResource: resource) }) { requestExamination(of: row.key) }
        case .removedAll: distrust()
        case .noticed: break
        }
    }
}
