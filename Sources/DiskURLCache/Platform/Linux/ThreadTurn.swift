#if DEBUG && canImport(FoundationNetworking)
    import Foundation

    /// Says when a thread goes on, for tests of orders of threads: a thread that has one waits for it before each lock.
    /// Not in a release build.
    package final class ThreadTurn {
        private static let key: pthread_key_t = {
            var key = pthread_key_t()
            pthread_key_create(&key, nil)
            return key
        }()

        /// That of the calling thread, which does not retain it; nil in threads of no such test.
        package static var ofThread: ThreadTurn? {
            get { pthread_getspecific(key).map { Unmanaged.fromOpaque($0).takeUnretainedValue() } }
            set { pthread_setspecific(key, newValue.map { Unmanaged.passUnretained($0).toOpaque() }) }
        }

        /// Returns when the thread may go on.
        package let wait: () -> Void
        /// Takes the work of a queue, to do it on a thread that has a turn, too. False if the queue is to do it.
        package let take: (DispatchQueue, @escaping @Sendable () -> Void) -> Bool

        package init(
            wait: @escaping () -> Void, take: @escaping (DispatchQueue, @escaping @Sendable () -> Void) -> Bool
        ) {
            self.wait = wait
            self.take = take
        }
    }

    extension DispatchQueue {
        /// Takes the place of Dispatch's own method in this module, and in tests that see what is internal: that one
        /// has further parameters.
        func async(execute work: @escaping @Sendable () -> Void) {
            if ThreadTurn.ofThread?.take(self, work) != true { async(group: nil, execute: work) }
        }
    }
#endif
