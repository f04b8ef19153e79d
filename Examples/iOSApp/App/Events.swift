import DiskURLCache
import SwiftUI

/// The last events of the cache. Loads by the system's loader have none of their own: what is stored for them has.
@MainActor
final class EventList: ObservableObject {
    @Published private(set) var lines: [String] = []

    func follow(_ cache: DiskURLCache) async {
        for await event in cache.events() {
            lines.insert(event.description, at: 0)
            if lines.count > 200 { lines.removeLast() }
        }
    }
}

struct EventsView: View {
    let cache: DiskURLCache
    @ObservedObject var events: EventList
    @State private var statistics = ""

    var body: some View {
        NavigationStack {
            List {
                Section("Counts") {
                    Text(statistics).font(.caption.monospaced())
                    Button("Read") { statistics = cache.statistics.description }
                    Button("Remove everything") { Task { await cache.perform { $0.removeAllCachedResponses() } } }
                }
                Section("Events") {
                    // Lines may be equal.
                    ForEach(Array(events.lines.enumerated()), id: \.offset) { line in
                        Text(line.element).font(.caption.monospaced())
                    }
                }
            }
            .navigationTitle("Events")
        }
    }
}
