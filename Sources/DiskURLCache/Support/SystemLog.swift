/// Reports problems to developers who do not listen to events: to the unified log on Apple platforms, to standard error
/// elsewhere.
enum SystemLog {
    /// - Parameter text: a sentence without anything that could identify a user.
    static func warn(_ text: String) { write(text) }
}
