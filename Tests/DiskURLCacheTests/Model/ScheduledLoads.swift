#if DEBUG && os(Linux)
    import Foundation

    @testable import DiskURLCache

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// A load in a schedule, with its client and its network.
    final class ScheduledLoad: LoadClient, LoadTransport {
        private struct State {
            var data = Data()
            var hasEnded = false
            /// Whether the answers to its own requests may be stored, by their values.
            var answers: [Int: Bool] = [:]
        }

        let place: Int
        /// By which number the record knows its cache, and when that last looked for changes by others.
        let cache: Int
        let looked: Int
        let began: Int
        let isUnsafe: Bool
        /// As a session: files are not used where an answer arrives.
        let sharesItsQueue: Bool
        private let loads: ScheduledLoads
        private let state = Mutex(State())

        init(
            at place: Int, of cache: Int, looked: Int, began: Int, isUnsafe: Bool, sharesItsQueue: Bool,
            _ loads: ScheduledLoads
        ) {
            self.place = place
            self.cache = cache
            self.looked = looked
            self.began = began
            self.isUnsafe = isUnsafe
            self.sharesItsQueue = sharesItsQueue
            self.loads = loads
        }

        var hasEnded: Bool { state.withLock { $0.hasEnded } }
        func isAnsweredStorably(with value: Int) -> Bool? { state.withLock { $0.answers[value] } }
        func note(_ value: Int, isStorable: Bool) { state.withLock { $0.answers[value] = isStorable } }

        func send(_ request: DiskURLCache.Request, inPieces: Bool, token: FetchToken, receiver: any FetchReceiver) {
            guard token.didStart(cancel: {}, setPaused: { _ in }) else { return }
            let url = request.foundationURL ?? DiskURLCache.Request.noURL
            loads.wasSent(request, by: self, MemoryTransport.Exchange(url: url, token: token, receiver: receiver))
        }

        func perform(_ calls: [LoadCall]) { send(calls) }

        func send(_ calls: [LoadCall]) {
            for call in calls {
                switch call {
                case .load(let data): state.withLock { $0.data += data }
                case .finish(let report): end(report)
                case .fail: end(nil)
                case .receive, .stream, .read, .confirmStorage: break
                }
            }
        }

        func close() { state.withLock { $0.hasEnded = true } }

        /// - Parameter report: nil if it failed.
        private func end(_ report: LoadReport?) {
            let data: Data? = state.withLock { state in
                if state.hasEnded { return nil }
                state.hasEnded = true
                return state.data
            }
            guard let data, let report else { return }
            loads.hasEnded(self, with: isUnsafe ? nil : ScheduleRecord.value(of: data), report.storage)
        }
    }

    /// The loads of a schedule, and their requests, which the threads of the schedule answer.
    final class ScheduledLoads: Sendable {
        private struct Request: Sendable {
            let load: ScheduledLoad
            let exchange: MemoryTransport.Exchange
            let sent: Int
            /// The values of the responses that may be confirmed.
            let tags: [Int]
        }

        private let schedule: Schedule
        private let record: Mutex<ScheduleRecord>
        private let requests = Mutex<[Request]>([])
        private let running = Mutex<[(load: ScheduledLoad, driver: LoadDriver)]>([])

        init(_ schedule: Schedule, _ record: Mutex<ScheduleRecord>) {
            self.schedule = schedule
            self.record = record
        }

        // MARK: By the threads of the schedule

        func start(from cache: DiskURLCache, _ number: Int, _ random: inout TestRandom) {
            let place = Int.random(in: ScheduleRecord.places.indices, using: &random)
            var request = ScheduleRecord.request(place)
            switch Int.random(in: 0..<8, using: &random) {
            case 0: request.httpMethod = "POST"
            case 1: request.cachePolicy = .reloadIgnoringLocalCacheData
            case 2, 3: request.cachePolicy = .reloadRevalidatingCacheData
            default: break
            }
            let looked = record.withLock { $0.looks[number] ?? 0 }
            let load = ScheduledLoad(
                at: place, of: number, looked: looked, began: schedule.now(),
                isUnsafe: request.httpMethod == "POST", sharesItsQueue: Bool.random(using: &random), self)
            let driver = LoadDriver(cache: cache, request: request, transport: load, client: load)
            running.withLock { $0.append((load, driver)) }
            driver.start()
        }

        func cancelOne(_ random: inout TestRandom) {
            running.withLock { $0.randomElement(using: &random) }?.driver.cancel()
        }

        /// Whether all loads have ended.
        var haveEnded: Bool {
            running.withLock { running in
                running.removeAll { $0.load.hasEnded }
                return running.isEmpty
            }
        }

        /// Answers a request. False if there is none.
        @discardableResult
        func answer(with value: Int, _ random: inout TestRandom) -> Bool {
            let next = requests.withLock { requests in
                requests.indices.randomElement(using: &random).map { requests.remove(at: $0) }
            }
            guard let next else { return false }
            let (load, exchange) = (next.load, next.exchange)
            // A request names the responses to other languages, too.
            let confirmed = record.withLock { record in
                next.tags.first { tag in record.histories[load.place].operations.contains { $0.kind == .store(tag) } }
            }
            let places = ScheduleRecord.places(of: ScheduleRecord.places[load.place].path)
            let kind = Int.random(in: 0..<10, using: &random)
            let isRefresh = (exchange.receiver as? LoadDriver)?.client == nil
            switch kind {
            case 0: exchange.end(URLError(.networkConnectionLost))
            case _ where load.isUnsafe:
                let began = schedule.now()
                record.withLock { $0.begin(.removal, of: load, began: began, at: places) }
                exchange.head(204)
                exchange.end()
            case 1...6 where confirmed != nil:
                let began = schedule.now()
                record.withLock { record in
                    record.begin(.update, of: load, began: began, at: [load.place])
                    record.confirms(with: value, began: began, load, isRefresh: isRefresh)
                }
                var fields = ["ETag": ScheduleRecord.tag(confirmed ?? 0), "Cache-Control": "max-age=3600"]
                fields[ScheduleRecord.confirmation] = "\(value)"
                exchange.head(304, HeaderFields(dictionary: fields))
                exchange.end()
            default:
                let lifetime = ScheduleRecord.Lifetime.allCases[value % 3]
                let isStorable = lifetime != .notStored
                load.note(value, isStorable: isStorable)
                // One that may not be stored removes what it replaces.
                let (change, changed) = isStorable ? (KeyHistory.Kind.store(value), [load.place]) : (.update, places)
                record.withLock { $0.begin(change, of: load, began: next.sent, at: changed) }
                exchange.head(200, HeaderFields(dictionary: ScheduleRecord.fields(value, lifetime)))
                let body = ScheduleRecord.body(value)
                exchange.piece(String(body.prefix(1)))
                let isWhole = kind != 1
                if isWhole { exchange.piece(String(body.dropFirst())) }
                exchange.end(isWhole ? nil : URLError(.networkConnectionLost))
                if isRefresh, isWhole, isStorable { record.withLock { $0.refreshed(load, with: value) } }
            }
            return true
        }

        // MARK: By the loads

        func wasSent(_ request: DiskURLCache.Request, by load: ScheduledLoad, _ exchange: MemoryTransport.Exchange) {
            let tags = request.headerFields["If-None-Match"]?.split { !$0.isNumber }.compactMap { Int($0) } ?? []
            let sent = schedule.now()
            requests.withLock { $0.append(Request(load: load, exchange: exchange, sent: sent, tags: tags)) }
        }

        /// - Parameter value: nil for an unsafe request, which removes.
        func hasEnded(_ load: ScheduledLoad, with value: Int?, _ storage: LoadReport.Storage?) {
            let time = schedule.now()
            let isStored = if case .stored? = storage { true } else { false }
            record.withLock { record in
                record.end(load, isStored: isStored, at: time)
                guard let value else { return }
                record.judge(value, of: load, notStored: isStored ? nil : "\(storage.map { "\($0)" } ?? "")", at: time)
            }
        }
    }
#endif
