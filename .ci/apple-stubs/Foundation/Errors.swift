public let NSLocalizedFailureReasonErrorKey: String = ""
