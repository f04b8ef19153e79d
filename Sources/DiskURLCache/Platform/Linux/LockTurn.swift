#if DEBUG && canImport(FoundationNetworking)
    import Foundation

    /// Says when a thread goes on, for tests of orders of threads: a thread that has one waits for it before each lock.
    /// Not in a release build.
    package final class LockTurn {
        private static let key: pthread_key_t = {
            var key = pthread_key_t()
            pthread_key_create(&key, nil)
            return key
        }()

        /// That of the calling thread, which does not retain it; nil in threads of no such test.
        package static var ofThread: LockTurn? {
            get { pthread_getspecific(key).map { Unmanaged.fromOpaque($0).takeUnretainedValue() } }
            set { pthread_setspecific(key, newValue.map { Unmanaged.passUnretained($0).toOpaque() }) }
        }

        /// Returns when the thread may go on.
        package let wait: () -> Void

        package init(wait: @escaping () -> Void) {
            self.wait = wait
        }
    }
#endif
