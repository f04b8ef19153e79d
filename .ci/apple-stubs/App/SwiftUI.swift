// Module SwiftUI, as far as Examples/iOSApp uses it, with what it exports of Combine.
//
// Facts: Apple's documentation of SwiftUI for iOS 16. Certain: names, labels, isolation to the main actor. Left out:
// what the app does not use, and that many of these types are views of further types.

@_exported import Foundation

// MARK: Views and scenes

@MainActor @preconcurrency public protocol View {
    associatedtype Body: View
    @ViewBuilder var body: Body { get }
}
extension Never: View { public var body: Never { fatalError() } }
extension Optional: View where Wrapped: View { public var body: Never { fatalError() } }

@resultBuilder public struct ViewBuilder {
    public static func buildExpression<Content: View>(_ content: Content) -> Content { content }
    public static func buildBlock() -> EmptyView { fatalError() }
    public static func buildBlock<Content: View>(_ content: Content) -> Content { content }
    public static func buildBlock<each Content: View>(_ content: repeat each Content) -> TupleView<(repeat each Content)> {
        fatalError()
    }
    public static func buildIf<Content: View>(_ content: Content?) -> Content? { content }
    public static func buildEither<True: View, False: View>(first: True) -> Either<True, False> { fatalError() }
    public static func buildEither<True: View, False: View>(second: False) -> Either<True, False> { fatalError() }
}
public struct EmptyView: View { public var body: Never { fatalError() } }
public struct TupleView<T>: View { public var body: Never { fatalError() } }
public struct Either<True: View, False: View>: View { public var body: Never { fatalError() } }
public struct SomeView: View { public var body: Never { fatalError() } }

@MainActor @preconcurrency public protocol App {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
    init()
}
extension App { public static func main() {} }
@MainActor @preconcurrency public protocol Scene {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
}
extension Never: Scene {}
@resultBuilder public struct SceneBuilder {
    public static func buildBlock<Content: Scene>(_ content: Content) -> Content { content }
}
public struct WindowGroup<Content: View>: Scene {
    public init(@ViewBuilder content: () -> Content) {}
    public var body: Never { fatalError() }
}
public struct BackgroundTask<Request, Response>: Sendable {}
extension BackgroundTask where Request == Void, Response == Void {
    public static func appRefresh(_ identifier: String) -> BackgroundTask<Void, Void> { fatalError() }
}
public struct SomeScene: Scene { public var body: Never { fatalError() } }
extension Scene {
    public func backgroundTask<D: Sendable, R: Sendable>(
        _ task: BackgroundTask<D, R>, action: @escaping @Sendable (D) async -> R
    ) -> some Scene { SomeScene() }
    public func onChange<V: Equatable>(of value: V, perform action: @escaping (_ newValue: V) -> Void) -> some Scene {
        SomeScene()
    }
}
public enum ScenePhase: Comparable, Sendable { case background, inactive, active }

// MARK: State

@propertyWrapper public struct State<Value> {
    public init(wrappedValue value: Value) {}
    public var wrappedValue: Value { get { fatalError() } nonmutating set {} }
    public var projectedValue: Binding<Value> { fatalError() }
}
@propertyWrapper public struct Binding<Value> {
    public init(get: @escaping () -> Value, set: @escaping (Value) -> Void) {}
    public var wrappedValue: Value { get { fatalError() } nonmutating set {} }
}
@MainActor @preconcurrency @propertyWrapper public struct StateObject<ObjectType: ObservableObject> {
    public init(wrappedValue thunk: @autoclosure @escaping () -> ObjectType) {}
    public var wrappedValue: ObjectType { fatalError() }
}
@MainActor @preconcurrency @propertyWrapper public struct ObservedObject<ObjectType: ObservableObject> {
    public init(wrappedValue: ObjectType) {}
    public var wrappedValue: ObjectType { fatalError() }
}
@propertyWrapper public struct Environment<Value> {
    public init(_ keyPath: KeyPath<EnvironmentValues, Value>) {}
    public var wrappedValue: Value { fatalError() }
}
public struct EnvironmentValues { public var scenePhase: ScenePhase { fatalError() } }

/// Of Combine.
public protocol ObservableObject: AnyObject {}
/// Of Combine.
@propertyWrapper public struct Published<Value> {
    public init(wrappedValue: Value) {}
    public var wrappedValue: Value { get { fatalError() } set {} }
}

// MARK: What is shown

public struct LocalizedStringKey: ExpressibleByStringInterpolation, Sendable { public init(stringLiteral value: String) {} }
public struct Text: View {
    @_disfavoredOverload public init<S: StringProtocol>(_ content: S) {}
    public init(_ key: LocalizedStringKey) {}
    public var body: Never { fatalError() }
}
public struct Label: View {
    public init(_ key: LocalizedStringKey, systemImage name: String) {}
    public var body: Never { fatalError() }
}
public struct Image: View {
    public func resizable() -> Image { self }
    public var body: Never { fatalError() }
}
public struct ProgressView: View { public init() {} ; public var body: Never { fatalError() } }
public struct AsyncImage<Content: View>: View {
    public init<I: View, P: View>(
        url: URL?, scale: Double = 1, @ViewBuilder content: @escaping (Image) -> I, @ViewBuilder placeholder: @escaping () -> P
    ) where Content == Either<I, P> {}
    public var body: Never { fatalError() }
}
public struct Button<Content: View>: View {
    @preconcurrency public init(_ key: LocalizedStringKey, action: @escaping @MainActor () -> Void) where Content == Text {}
    public var body: Never { fatalError() }
}
public struct LabeledContent<Label: View, Content: View>: View {
    public init<S: StringProtocol>(_ key: LocalizedStringKey, value: S) where Label == Text, Content == Text {}
    public var body: Never { fatalError() }
}
public struct List<Content: View>: View {
    public init(@ViewBuilder content: () -> Content) {}
    public init<Data: RandomAccessCollection, ID: Hashable, Row: View>(
        _ data: Data, id: KeyPath<Data.Element, ID>, @ViewBuilder rowContent: @escaping (Data.Element) -> Row
    ) where Content == ForEach<Data, ID, Row> {}
    public var body: Never { fatalError() }
}
public struct ForEach<Data: RandomAccessCollection, ID: Hashable, Content: View>: View {
    public init(
        _ data: Data, id: KeyPath<Data.Element, ID>, @ViewBuilder content: @escaping (Data.Element) -> Content
    ) {}
    public var body: Never { fatalError() }
}
public struct Section<Content: View>: View {
    public init(_ key: LocalizedStringKey, @ViewBuilder content: () -> Content) {}
    public var body: Never { fatalError() }
}
public struct NavigationStack<Root: View>: View {
    public init(@ViewBuilder root: () -> Root) {}
    public var body: Never { fatalError() }
}
public struct TabView<Content: View>: View {
    public init(@ViewBuilder content: () -> Content) {}
    public var body: Never { fatalError() }
}
public struct Font: Sendable { public static let caption = Font() }
extension Font { public func monospaced() -> Font { self } }
extension View {
    public func navigationTitle(_ key: LocalizedStringKey) -> some View { SomeView() }
    public func tabItem<V: View>(@ViewBuilder _ label: () -> V) -> some View { SomeView() }
    public func toolbar<V: View>(@ViewBuilder content: () -> V) -> some View { SomeView() }
    public func task(
        priority: TaskPriority = .userInitiated, @_inheritActorContext _ action: sending @escaping @isolated(any) () async -> Void
    ) -> some View { SomeView() }
    public func scaledToFit() -> some View { SomeView() }
    public func frame(minHeight: Double? = nil) -> some View { SomeView() }
    public func font(_ font: Font?) -> some View { SomeView() }
}
