// Module Foundation, further: what errors say.

public let NSLocalizedFailureReasonErrorKey: String = ""

// By `CustomNSError`, which `URLError` conforms to.
extension URLError {
    public var errorUserInfo: [String: Any] { [:] }
}

public let NSURLErrorKey = ""
public let NSFilePathErrorKey = ""
