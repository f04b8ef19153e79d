#if canImport(FoundationNetworking)
    import Foundation

    /// A session of `makeSession`. It notes each data task that it makes, so that a load need not read its task: see
    /// `NotedTasks`.
    ///
    /// The async methods of `URLSession` make their tasks by a way that cannot be overridden. Those tasks are read, and
    /// so are uploads and downloads: see `TaskSession`.
    final class LoaderSession: URLSession, @unchecked Sendable {
        // @unchecked: no state of its own.

        override func dataTask(with url: URL) -> URLSessionDataTask {
            noted(super.dataTask(with: url), of: nil, hasHandler: false)
        }

        override func dataTask(with request: URLRequest) -> URLSessionDataTask {
            noted(super.dataTask(with: request), of: request, hasHandler: false)
        }

        override func dataTask(
            with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
        ) -> URLSessionDataTask {
            noted(super.dataTask(with: url, completionHandler: completionHandler), of: nil, hasHandler: true)
        }

        override func dataTask(
            with request: URLRequest,
            completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
        ) -> URLSessionDataTask {
            noted(super.dataTask(with: request, completionHandler: completionHandler), of: request, hasHandler: true)
        }

        /// - Parameter request: as the app gave it; nil if it only gave a URL.
        private func noted(
            _ task: URLSessionDataTask, of request: URLRequest?, hasHandler: Bool
        ) -> URLSessionDataTask {
            NotedTasks.shared.note(
                task, of: NetworkSessions.shared.outer(of: self), hasHandler: hasHandler,
                cookie: request?.value(forHTTPHeaderField: "Cookie"))
            return task
        }
    }

    /// The tasks of `LoaderSession`s that have not ended, each with its session and with what the app wants of it.
    final class NotedTasks: Sendable {
        static let shared = NotedTasks()

        struct Note {
            /// Nil after the end of the task: another object may have its address then.
            fileprivate weak var task: URLSessionTask?
            /// The task keeps its session alive.
            fileprivate(set) weak var outer: OuterSession?
            /// Whether a completion handler gets the body.
            let hasHandler: Bool
            /// The field of the request as the app gave it, before Foundation added the session's cookies.
            let cookie: String?
        }

        private struct State {
            var notes: [ObjectIdentifier: Note] = [:]
            /// When there are more notes than this, those of released tasks are removed: of a task that the loader's
            /// protocol did not serve, nobody tells the end.
            var limit = 64
        }

        private let state = Mutex(State())

        func note(_ task: URLSessionTask, of outer: OuterSession, hasHandler: Bool, cookie: String?) {
            let note = Note(task: task, outer: outer, hasHandler: hasHandler, cookie: cookie)
            let living = state.withLock { state -> [URLSessionTask] in
                state.notes[ObjectIdentifier(task)] = note
                guard state.notes.count > state.limit else { return [] }
                let living = state.notes.compactMapValues(\.task)
                state.notes = state.notes.filter { living[$0.key] != nil }
                state.limit = max(64, 2 * state.notes.count)
                return Array(living.values)
            }
            // Released outside of the lock: the app may have released one meanwhile, and its delegate or completion
            // handler may make a task as it goes.
            withExtendedLifetime(living) {}
        }

        /// Nil for a task that no `LoaderSession` made by an overridden method.
        func note(of task: URLSessionTask) -> Note? {
            state.withLock { $0.notes[ObjectIdentifier(task)] }.flatMap { $0.task === task ? $0 : nil }
        }

        /// The task has ended.
        func forget(_ task: URLSessionTask) {
            state.withLock { _ = $0.notes.removeValue(forKey: ObjectIdentifier(task)) }
        }

        var count: Int { state.withLock { $0.notes.count } }
    }
#endif
