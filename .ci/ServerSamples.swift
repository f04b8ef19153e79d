// The declarations that the samples of Integrations/README.md use; see check-samples. The file is never run.

import CachingHTTPClient
import Foundation
import Hummingbird
import Logging

let client = CachingHTTPClient(storage: .init(memoryCapacity: 0, diskCapacity: 0))
let logger = Logger(label: "sample")
nonisolated(unsafe) var server = Application(router: Router())
let secret = ""
