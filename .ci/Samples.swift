// The declarations that the samples of README and documentation use; see check-samples. The file is never run.

import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

let cache = DiskURLCache(memoryCapacity: 0, diskCapacity: 0)
let url = URL(fileURLWithPath: "/")
let request = URLRequest(url: url)
let session = URLSession.shared
let response = URLResponse(url: url, mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
let data = Data()
let directory = url
