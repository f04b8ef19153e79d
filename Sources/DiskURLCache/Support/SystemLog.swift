/// Reports problems to developers who do not listen to events, if the app has no log of its own
/// (`Configuration.log`): to the unified log on Apple platforms, to standard error elsewhere.
enum SystemLog {
    /// - Parameter text: a sentence without anything that could identify a user.
    static func warn(_ text: String) { write(text) }
}
