import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The loader where it is chosen by `makeSession`: the same on every platform, and what is decided for Apple's.
@Suite(.fewAtATime) struct LoaderChoiceTests {
    private let scratch: ScratchDirectory

    init() throws {
        scratch = try ScratchDirectory("choice")
    }

    private func cache(_ platform: Platform, _ name: String = "cache") -> DiskURLCache {
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: 8 << 20, diskCapacity: 64 << 20, directory: scratch.appending(name))
        configuration.platform = platform
        configuration.superclassDirectory = scratch.appending("superclass")
        return DiskURLCache(configuration: configuration)
    }

    // MARK: Sessions

    @Test(.enabled(if: LoadingHarness.storesForSessions, "no loads through sessions"))
    func aSessionMadeForTheLoaderCaches() async throws {
        let origin = try OriginServer.counting()
        let cache = cache(.current)
        let configuration = URLSessionConfiguration.ephemeral.patient
        let session = cache.makeSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        for _ in 1...2 {
            let (data, _) = try await session.data(from: origin.url("/a"))
            #expect(String(decoding: data, as: UTF8.self) == "1")
        }
        #expect(origin.requests.count == 1)
        #expect(configuration.urlCache !== cache, "the configuration that was given is left as it was")
    }

    @Test func theDelegateAndItsQueueAreTheSessions() {
        let delegate = RecordingDelegate()
        let queue = OperationQueue()
        let session = cache(.iOS).makeSession(
            configuration: .ephemeral, delegate: delegate, delegateQueue: queue)
        defer { session.invalidateAndCancel() }
        #expect(session.delegate === delegate && session.delegateQueue === queue)
    }

    @Test func whereNoProtocolCanBeDefinedTheSessionIsTheSystems() {
        let session = cache(.watchOS).makeSession(configuration: .ephemeral)
        defer { session.invalidateAndCancel() }
        #expect(session.configuration.protocolClasses?.contains(where: CachingURLProtocol.isLoader) != true)
        #expect(session.configuration.urlCache is DiskURLCache)
    }

    // MARK: Classes of sessions

    /// On Apple platforms a load finds its session by the class of its protocol.
    @Test func eachSessionHasAClassByWhichItsProtocolsKnowIt() async throws {
        let classes = SessionClasses()
        var loaders: [CachingURLProtocol.Type] = []
        var sessions = (0..<3).map { _ in
            classes.makeSession { loader in
                loaders.append(loader)
                return URLSession(configuration: .ephemeral)
            }
        }
        defer { for session in sessions { session.invalidateAndCancel() } }
        #expect(Set(loaders.map(ObjectIdentifier.init)).count == 3)
        for (loader, session) in zip(loaders, sessions) {
            #expect(CachingURLProtocol.isLoader(loader))
            #expect(classes.session(of: loader) === session)
            #if canImport(FoundationNetworking)
                let instance = loader.init(request: Responses.request("/a"), cachedResponse: nil, client: nil)
                #expect(instance.loader == loader)
            #endif
        }
        #expect(classes.session(of: CachingURLProtocol.self) == nil)

        sessions.remove(at: 1).invalidateAndCancel()
        await eventually("the release of the class") { classes.session(of: loaders[1]) == nil }
        let next = classes.makeSession { loader in
            #expect(loader == loaders[1], "classes are used again, since they are never removed")
            return URLSession(configuration: .ephemeral)
        }
        sessions.append(next)
        #expect(classes.session(of: loaders[1]) === next)
    }

    // MARK: What is taken, and what is sent

    @Test func onlyDataTasksOfKnownSessionsWithAKeyAreTaken() {
        let cache = cache(.iOS)
        let request = Responses.request("/a")
        func takes(_ request: URLRequest, isDataTask: Bool = true, _ cache: DiskURLCache?) -> Bool {
            LoaderChoice.takes(request, isDataTask: isDataTask, cache: cache?.core)
        }
        #expect(takes(request, cache))
        #expect(!takes(request, nil), "a load without a session, such as Data(contentsOf:)")
        #expect(!takes(request, isDataTask: false, cache))
        var other = request
        other.httpMethod = "POST"
        #expect(!takes(other, cache))
        #expect(!takes(URLRequest(url: URL(fileURLWithPath: "/tmp/a")), cache))
    }

    @Test func theBodyOfTheFirstRequestGoesWithTheSameURLAndMethodOnly() throws {
        var original = Responses.request("/a")
        original.httpMethod = "POST"
        original.httpBody = Data("body".utf8)
        var given = Responses.request("/a", fields: ["Authorization": "configured"])
        given.httpMethod = "POST"
        let sent = LoaderChoice.sent(given, original: original)
        #expect(sent.httpBody == original.httpBody)
        #expect(sent.value(forHTTPHeaderField: "Authorization") == "configured")
        // After a 303 the task asks for something else.
        var next = given
        next.httpMethod = "GET"
        #expect(LoaderChoice.sent(next, original: original).httpBody == nil)
        next = given
        next.url = Responses.url("/b")
        #expect(LoaderChoice.sent(next, original: original).httpBody == nil)
        #expect(LoaderChoice.sent(given, original: nil).httpBody == nil)
    }

    // MARK: Challenges

    @Test func trustGoesToTheSessionsDelegateFirst() {
        func route(_ session: Bool, _ task: Bool, _ sessionForTask: Bool) -> ChallengeRoute {
            ChallengeRoute(.trust, .init(session: session, task: task, sessionForTask: sessionForTask))
        }
        #expect(route(true, true, true) == .session)
        #expect(route(false, true, true) == .task)
        #expect(route(false, false, true) == .sessionForTask)
        #expect(route(false, false, false) == .system)
    }

    @Test func passwordsAreAskedOfTheTasksDelegateFirst() {
        func route(_ session: Bool, _ task: Bool, _ sessionForTask: Bool) -> ChallengeRoute {
            ChallengeRoute(.request, .init(session: session, task: task, sessionForTask: sessionForTask))
        }
        #expect(route(true, true, true) == .task)
        #expect(route(true, false, true) == .sessionForTask)
        #expect(route(true, false, false) == .system, "the session's method is about connections")
    }

    @Test func credentialsThatTheRequestDoesNotShowAreNoticed() {
        func adds(
            _ disposition: URLSession.AuthChallengeDisposition, proposed: Bool,
            _ method: String = NSURLAuthenticationMethodHTTPBasic
        ) -> Bool {
            ChallengeRoute.addsCredentials(
                ChallengeRoute.Subject(method: method), disposition: disposition, hasProposed: proposed)
        }
        #expect(adds(.useCredential, proposed: false))
        #expect(adds(.performDefaultHandling, proposed: true))
        #expect(!adds(.performDefaultHandling, proposed: false))
        #expect(!adds(.rejectProtectionSpace, proposed: true))
        let trust = "NSURLAuthenticationMethodServerTrust"
        #expect(!adds(.useCredential, proposed: true, trust) && !adds(.performDefaultHandling, proposed: true, trust))
        // The system may have a ticket, or a certificate that it prefers.
        let connection = [
            NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate,
            "NSURLAuthenticationMethodClientCertificate",
        ]
        for method in connection {
            #expect(
                adds(.useCredential, proposed: false, method) && adds(.performDefaultHandling, proposed: false, method))
            #expect(!adds(.rejectProtectionSpace, proposed: true, method))
            #expect(!adds(.cancelAuthenticationChallenge, proposed: true, method))
        }
    }

    @Test func whatWasGivenToCredentialsIsNotStored() async throws {
        let cache = cache(.linux)
        let network = MemoryTransport { _, exchange in
            exchange.receiver.fetchUsedCredentials(exchange.token)
            exchange.head(200, ["Cache-Control": "max-age=86400"])
            exchange.piece("secret")
            exchange.end()
        }
        for _ in 1...2 {
            let answer = try await LoadReader(Responses.request("/a"), from: cache, over: network).answer()
            #expect(answer.data == Data("secret".utf8) && answer.source == .network)
        }
        #expect(network.requests.count == 2)
        #expect(!cache.contains(Responses.request("/a")))
    }
}
