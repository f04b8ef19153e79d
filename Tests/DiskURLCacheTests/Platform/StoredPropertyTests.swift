#if canImport(FoundationNetworking)
    import Foundation
    import FoundationNetworking
    import Testing

    @testable import DiskURLCache

    @Suite struct StoredPropertyTests {
        private class Base: @unchecked Sendable {
            let number = 7
            var object: NSObject? = NSObject()
        }
        private final class Derived: Base, @unchecked Sendable {
            let text = String(repeating: "long enough to be on the heap ", count: 3)
            weak var weakly: NSObject?
        }

        @Test func readsWhatIsThere() throws {
            let derived = Derived()
            #expect(StoredProperty("text", of: Derived.self)?.value(of: derived, as: String.self) == derived.text)
            let number = try #require(StoredProperty("number", of: Derived.self))
            #expect(number.value(of: derived, as: Int.self) == 7)
            #expect(number.value(of: derived) as? Int == 7)
            let object = try #require(StoredProperty("object", of: Base.self))
            #expect(object.value(of: derived) as? NSObject === derived.object)
        }

        @Test func anotherTypeOrNoSuchPropertyIsNil() throws {
            let number = try #require(StoredProperty("number", of: Base.self))
            #expect(number.value(of: Base(), as: UInt.self) == nil)
            #expect(number.value(of: Base(), as: String.self) == nil)
            #expect(StoredProperty("text", of: Base.self) == nil)
            #expect(StoredProperty("number", of: NSObject.self) == nil)
        }

        @Test func aWeakPropertyIsKnownByItsPlace() throws {
            let derived = Derived()
            let object = try #require(derived.object)
            derived.weakly = object
            #expect(try #require(StoredProperty("object", of: Derived.self)).holds(object, in: derived))
            #expect(!(try #require(StoredProperty("weakly", of: Derived.self)).holds(object, in: derived)))
        }

        /// Should one of these fail with a new Foundation, the cache still works: slower, or with less known of a session.
        @Test func foundationKeepsThemWhereWeLook() throws {
            let session = URLSession(configuration: .ephemeral)
            defer { session.invalidateAndCancel() }
            let task = session.dataTask(with: try #require(URL(string: "http://example.com/")))
            let link = SessionLink(task)
            #expect(link.session === session)
            #expect(link.workQueue != nil)
            let response = try #require(Self.response())
            let stored = StoredProperty("_allHeaderFields", of: HTTPURLResponse.self)
            #expect(
                stored?.value(of: response, as: [String: String].self) == response.allHeaderFields as? [String: String])
        }

        /// Such as a test of the app's own may hand to the cache: what it lacks must not be taken for what all lack.
        @Test func aTaskWithoutASessionTeachesNothing() throws {
            final class Double: URLSessionDataTask, @unchecked Sendable {
                init(_ number: Int) { super.init() }
            }
            let session = URLSession(configuration: .ephemeral)
            defer { session.invalidateAndCancel() }
            let url = try #require(URL(string: "http://example.com/"))
            let properties = TaskProperties()
            for _ in 0..<2 {
                #expect(properties.sessionAndWorkQueue(of: Double(1)).0 == nil)
                let found = properties.sessionAndWorkQueue(of: session.dataTask(with: url))
                #expect(found.0 === session)
                #expect(found.1 != nil)
            }
        }

        @Test func fieldsOfAResponseAreThoseThatItTells() throws {
            let response = try #require(Self.response())
            let fields = HeaderFields(response)
            #expect(fields.count == 3)
            #expect(
                Dictionary(uniqueKeysWithValues: fields.fields.map { ($0.name, $0.value) })
                    == response.allHeaderFields as? [String: String])
            #expect(fields["content-TYPE"] == "text/plain")
            #expect(response.field("cache-control") == "max-age=1")
            #expect(response.field("Vary") == nil)
        }

        private static func response() -> HTTPURLResponse? {
            URL(string: "http://example.com/").flatMap {
                HTTPURLResponse(
                    url: $0, statusCode: 200, httpVersion: nil,
                    headerFields: ["Content-Type": "text/plain", "Cache-Control": "max-age=1", "X-A": "b"])
            }
        }
    }
#endif
