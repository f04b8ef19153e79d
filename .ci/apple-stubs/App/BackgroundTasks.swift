// Module BackgroundTasks, as far as Examples/iOSApp uses it. Facts: Apple's documentation. Certain.

@_exported import Foundation

open class BGTaskRequest: NSObject {
    open var earliestBeginDate: Date?
}
open class BGAppRefreshTaskRequest: BGTaskRequest {
    public init(identifier: String) {}
}
open class BGTaskScheduler: NSObject {
    open class var shared: BGTaskScheduler { fatalError() }
    open func submit(_ taskRequest: BGTaskRequest) throws {}
}
