#if os(Linux)
    import Foundation
    import Glibc

    /// Headless Chromium, by the DevTools protocol over a pair of named pipes.
    final class Browser {
        struct Failure: Error, CustomStringConvertible { let description: String }

        static let program = ["chromium", "chromium-browser", "google-chrome"].lazy.map { "/usr/bin/" + $0 }
            .first { FileManager.default.isExecutableFile(atPath: $0) }

        private let process = Process()
        private let output: FileHandle
        private let input: FileHandle
        private var buffer = Data()
        private var number = 0
        private var session: String?
        private var events: [[String: Any]] = []

        init(profile: String) throws {
            try FileManager.default.createDirectory(atPath: profile, withIntermediateDirectories: true)
            let pipes = ["to", "from"].map { profile + "/" + $0 }
            for pipe in pipes { mkfifo(pipe, 0o600) }
            // It reads from descriptor 3 and writes to 4. --no-sandbox is for root.
            let options = [
                "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                "--remote-debugging-pipe", "--user-data-dir=\(profile)", "about:blank",
            ]
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            process.arguments =
                ["-c", "exec \"$@\" 3<'\(pipes[0])' 4>'\(pipes[1])'", "sh", Self.program ?? ""] + options
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            // Each of these waits until the other side is open.
            output = try FileHandle(forWritingTo: URL(fileURLWithPath: pipes[0]))
            input = try FileHandle(forReadingFrom: URL(fileURLWithPath: pipes[1]))
            let target = try call("Target.createTarget", ["url": "about:blank"])["targetId"] ?? ""
            session = try call("Target.attachToTarget", ["targetId": target, "flatten": true])["sessionId"] as? String
            for domain in ["Page", "Runtime", "Log", "Network"] { _ = try call(domain + ".enable") }
        }

        deinit {
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
        }

        /// What it wrote that was no answer: exceptions, texts in the console, requests for anything but files and
        /// data.
        var complaints: [String] {
            events.compactMap { event in
                let parameters = event["params"] as? [String: Any] ?? [:]
                switch event["method"] as? String {
                case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded": return "\(parameters)"
                case "Network.requestWillBeSent":
                    let url = (parameters["request"] as? [String: Any])?["url"] as? String ?? ""
                    // Chromium draws the symbol of a field for a date from a data URL of its own.
                    return url.hasPrefix("file:") || url.hasPrefix("data:") ? nil : "the page asks for \(url)"
                default: return nil
                }
            }
        }

        func open(_ page: URL, width: Int, scheme: String) throws {
            events = []
            let metrics: [String: Any] = [
                "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 700,
            ]
            _ = try call("Emulation.setDeviceMetricsOverride", metrics)
            let features = [["name": "prefers-color-scheme", "value": scheme]]
            _ = try call("Emulation.setEmulatedMedia", ["features": features])
            _ = try call("Page.navigate", ["url": page.absoluteString])
            while !events.contains(where: { $0["method"] as? String == "Page.loadEventFired" }) {
                events.append(try message())
            }
        }

        /// The value of a script; nil for `undefined`.
        func value(_ script: String) throws -> Any? {
            let answer = try call("Runtime.evaluate", ["expression": script, "returnByValue": true])
            if let exception = answer["exceptionDetails"] { throw Failure(description: "\(script): \(exception)") }
            return (answer["result"] as? [String: Any])?["value"]
        }

        func press(_ key: String) throws {
            let code = ["Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39][key] ?? 0
            var event: [String: Any] = ["key": key, "code": key, "windowsVirtualKeyCode": code, "type": "rawKeyDown"]
            if key == "Enter" { event.merge(["type": "keyDown", "text": "\r"]) { $1 } }
            _ = try call("Input.dispatchKeyEvent", event)
            event["text"] = nil
            event["type"] = "keyUp"
            _ = try call("Input.dispatchKeyEvent", event)
        }

        func picture() throws -> Data {
            let size = try call("Page.getLayoutMetrics")["cssContentSize"] as? [String: Any] ?? [:]
            let (width, height) = (size["width"] as? Double ?? 0, size["height"] as? Double ?? 0)
            let clip: [String: Any] = ["x": 0, "y": 0, "width": width, "height": min(height, 4_000), "scale": 1]
            let shot = try call(
                "Page.captureScreenshot", ["format": "png", "captureBeyondViewport": true, "clip": clip])
            return (shot["data"] as? String).flatMap { Data(base64Encoded: $0) } ?? Data()
        }

        private func call(_ method: String, _ parameters: [String: Any] = [:]) throws -> [String: Any] {
            number += 1
            var request: [String: Any] = ["id": number, "method": method, "params": parameters]
            request["sessionId"] = session
            try output.write(contentsOf: try JSONSerialization.data(withJSONObject: request) + Data([0]))
            while true {
                let answer = try message()
                guard answer["id"] as? Int == number else {
                    events.append(answer)
                    continue
                }
                guard let result = answer["result"] as? [String: Any] else {
                    throw Failure(description: "\(method): \(answer)")
                }
                return result
            }
        }

        /// The next answer or event, which ends with a zero.
        private func message() throws -> [String: Any] {
            while true {
                if let end = buffer.firstIndex(of: 0) {
                    defer { buffer = Data(buffer[(end + 1)...]) }
                    return try JSONSerialization.jsonObject(with: buffer[..<end]) as? [String: Any] ?? [:]
                }
                var descriptor = pollfd(fd: input.fileDescriptor, events: Int16(POLLIN), revents: 0)
                guard poll(&descriptor, 1, 60_000) > 0, case let more = input.availableData, !more.isEmpty else {
                    throw Failure(description: "Chromium ended, or is silent for a minute")
                }
                buffer += more
            }
        }
    }
#endif
