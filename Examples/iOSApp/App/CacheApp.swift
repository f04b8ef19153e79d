import DiskURLCache
import SwiftUI

/// One cache for the whole app, made before the first request: `AsyncImage` and everything else that uses
/// `URLSession.shared` is cached by the line with `URLCache.shared`.
@main
struct CacheApp: App {
    private let cache: DiskURLCache
    @StateObject private var events = EventList()
    @Environment(\.scenePhase) private var scenePhase

    init() {
        var settings = DiskURLCache.Configuration(memoryCapacity: 16 << 20, diskCapacity: 200 << 20)
        settings.staleIfError = .days(1)
        cache = DiskURLCache(configuration: settings)
        URLCache.shared = cache
    }

    var body: some Scene {
        WindowGroup {
            TabView {
                PicturesView().tabItem { Label("Pictures", systemImage: "photo") }
                AccountView(cache: cache).tabItem { Label("Account", systemImage: "person") }
                EventsView(cache: cache, events: events).tabItem { Label("Events", systemImage: "list.bullet") }
            }
            .task { await events.follow(cache) }
        }
        .onChange(of: scenePhase) { phase in
            if phase == .background { Refresh.schedule() }
        }
        .backgroundTask(.appRefresh(Refresh.identifier)) { [cache] in await Refresh.run(cache) }
    }
}
