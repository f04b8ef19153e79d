import DiskURLCache
import SwiftUI

/// An answer that depends on who is logged in, by a direct call. The log-out removes what was stored for the account.
struct AccountView: View {
    let cache: DiskURLCache
    @State private var token = Self.newToken
    @State private var outcome = "not loaded"
    @State private var stored = "unknown"

    private static var newToken: String { "Bearer \(UUID().uuidString)" }

    /// May be stored for ten minutes.
    private var request: URLRequest? {
        guard let url = URL(string: "https://httpbin.org/cache/600") else { return nil }
        var request = URLRequest(url: url)
        request.setValue(token, forHTTPHeaderField: "Authorization")
        return request
    }

    var body: some View {
        NavigationStack {
            List {
                Section("The account's page") {
                    LabeledContent("Source", value: outcome)
                    LabeledContent("Stored", value: stored)
                    Button("Load") { Task { await load() } }
                }
                Section("The account") {
                    Button("Log out, and log in as somebody else") { Task { await logOut() } }
                }
            }
            .navigationTitle("Account")
        }
    }

    private func load() async {
        guard let request else { return }
        do {
            outcome = try await cache.data(for: request).report.outcome.description
        } catch {
            outcome = error.localizedDescription
        }
        await look(for: request)
    }

    /// What was stored for the account is gone when this returns; what the next one loads is its own.
    private func logOut() async {
        guard let request else { return }
        let old = token
        await cache.perform { $0.removeCachedResponses(authorization: old) }
        await look(for: request)
        token = Self.newToken
        outcome = "not loaded"
    }

    private func look(for request: URLRequest) async {
        stored = await cache.perform { $0.contains(request) } ? "yes" : "no"
    }
}
