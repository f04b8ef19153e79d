#if DEBUG && os(Linux)
    import Foundation

    @testable import DiskURLCache

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// What each cache of a schedule did at each place, and what does not agree with it.
    struct ScheduleRecord {
        /// The responses of one URL in two languages.
        static let places = [("/a", "de"), ("/a", "en")].map { (path: $0.0, language: $0.1) }

        static func places(of path: String) -> [Int] { places.indices.filter { places[$0].path == path } }

        static func request(_ place: Int) -> URLRequest {
            var request = Responses.request(
                places[place].path, fields: ["Accept-Language": places[place].language])
            request.cacheOptions = .init(tags: ["account"])
            return request
        }

        static func tag(_ value: Int) -> String { "\"\(value)\"" }

        enum Lifetime: String, CaseIterable {
            case fresh = "max-age=3600"
            /// Is delivered, and refreshed in the background.
            case stale = "max-age=0, stale-while-revalidate=3600"
            case notStored = "no-store"
        }

        static func fields(_ value: Int, _ lifetime: Lifetime) -> [String: String] {
            ["Cache-Control": lifetime.rawValue, "Vary": "Accept-Language", "ETag": tag(value)]
        }

        /// The field of a 304 that says which one it is.
        static let confirmation = "Confirmation"

        /// Shows whether it is whole.
        static func body(_ value: Int) -> String { "\(value)." }

        /// 0 for what nobody stored.
        static func value(of body: Data) -> Int {
            let text = String(decoding: body, as: UTF8.self)
            return text.hasSuffix(".") ? Int(text.dropLast()) ?? 0 : 0
        }

        /// There is one cache only.
        let isAlone: Bool
        var histories = [KeyHistory](repeating: KeyHistory(), count: places.count)
        /// When each cache began to look for changes by others, the last time that it did.
        var looks: [Int: Int] = [:]
        var faults: [String] = []
        /// The beginnings of the loads whose refreshes in the background were answered with these values. Nobody hears
        /// when they end, but all have in the end.
        private var refreshes: [Int: Int] = [:]
        /// The 304s that have come, by their values.
        private var confirmations: [Int: Confirmation] = [:]
        /// What the answers to a load do that has not ended. By the beginning of the load, which is its own.
        private var ofLoads: [Int: [(kind: KeyHistory.Kind, began: Int, place: Int)]] = [:]

        private struct Confirmation {
            let place: Int
            /// Of the update, and of the load.
            let began: Int
            let loadBegan: Int
            /// The load may be cancelled, and then does nothing more. A refresh in the background is not.
            var isForCertain: Bool
        }

        init(isAlone: Bool) { self.isAlone = isAlone }

        mutating func fault(_ what: String, at place: Int) {
            faults.append("\(what) at \(Self.places[place])")
            faults += histories[place].operations.map { "\($0)" }
        }

        /// An answer to a load stores or removes.
        mutating func begin(_ kind: KeyHistory.Kind, of load: ScheduledLoad, began: Int, at places: [Int]) {
            for place in places {
                histories[place].append(.init(kind: kind, began: began, cache: load.cache, isOfALoad: true))
                ofLoads[load.began, default: []].append((kind, began, place))
            }
        }

        /// What the answers to a load were to do is done, but for a store that was refused.
        mutating func end(_ load: ScheduledLoad, isStored: Bool, at time: Int) {
            for (value, confirmed) in confirmations where confirmed.loadBegan == load.began {
                confirmations[value]?.isForCertain = true
            }
            for (kind, began, place) in ofLoads.removeValue(forKey: load.began) ?? [] {
                if case .store = kind, !isStored { continue }
                histories[place].end(began, at: time)
            }
        }

        mutating func refreshed(_ load: ScheduledLoad, with value: Int) { refreshes[value] = load.began }

        /// A 304 is an update of what the load has found.
        mutating func confirms(with value: Int, began: Int, _ load: ScheduledLoad, isRefresh: Bool) {
            confirmations[value] = Confirmation(
                place: load.place, began: began, loadBegan: load.began, isForCertain: isRefresh)
        }

        /// What is found when everything has ended.
        /// - Parameter confirmation: the value of the 304 that it was last confirmed by.
        mutating func judge(_ found: Int?, confirmation: Int?, at place: Int) {
            let history = histories[place]
            if let found, !history.allows(found) { fault("in the end \(found) is", at: place) }
            guard isAlone else { return }
            for case .store(let value) in history.operations.map(\.kind) {
                guard let began = refreshes[value], found != value else { continue }
                if !isOvertaken(since: began, history, isOwn: { $0.kind == .store(value) }) {
                    fault("in the end the refreshed \(value) is not", at: place)
                }
            }
            for (value, confirmed) in confirmations where confirmed.isForCertain && confirmed.place == place {
                let isOvertaken = isOvertaken(since: confirmed.loadBegan, history) { $0.began == confirmed.began }
                if confirmation != value, !isOvertaken { fault("in the end the 304 with \(value) is not", at: place) }
            }
        }

        /// Whether the answer to a request need not be stored: another answer, a store or a removal came meanwhile. A
        /// pin that changes the response that it replaces is no reason.
        private func isOvertaken(
            since time: Int, _ history: KeyHistory, isOwn: (KeyHistory.Operation) -> Bool
        ) -> Bool {
            history.operations.contains { ($0.kind != .update || $0.isOfALoad) && !isOwn($0) && $0.ended > time }
        }

        /// A load has delivered a value.
        /// - Parameter reason: why the answer was not stored; nil if it was.
        mutating func judge(_ value: Int, of load: ScheduledLoad, notStored reason: String?, at time: Int) {
            let history = histories[load.place].seen(by: load.cache, at: load.looked)
            let name =
                "\(value) is delivered by \(load.cache), which looked at \(load.looked), \(load.began) to \(time),"
            guard let isStorable = load.isAnsweredStorably(with: value) else {
                if !history.allows(value, in: load.began..<time) { fault(name, at: load.place) }
                return
            }
            guard isAlone, isStorable, let reason else { return }
            if isOvertaken(since: load.began, history, isOwn: { $0.kind == .store(value) }) { return }
            fault("\(name) and not stored: \(reason),", at: load.place)
        }
    }
#endif
