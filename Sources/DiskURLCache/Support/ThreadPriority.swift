import Foundation

enum ThreadPriority {
    /// Gives the calling thread, which ends soon, a third of the time that others get if there is not enough for all. Not
    /// less: the maintenance queue waits for it. A failure only means that it gets as much.
    static func giveWayToOthers() {
        #if canImport(Darwin)
            // `Thread.qualityOfService` counts only before a thread starts.
            pthread_set_qos_class_self_np(QOS_CLASS_UTILITY, 0)
        #elseif canImport(Glibc)
            // Zero is the calling thread: on Linux each thread has a priority.
            setpriority(.init(PRIO_PROCESS.rawValue), 0, 5)
        #else
            // Musl and Android (not tried): the name is a plain number there.
            setpriority(.init(PRIO_PROCESS), 0, 5)
        #endif
    }
}
