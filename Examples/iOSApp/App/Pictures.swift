import SwiftUI

/// Pictures by `AsyncImage`, which loads by `URLSession.shared`: the system's loader asks the cache.
struct PicturesView: View {
    /// Each URL redirects to one that may be stored for a month.
    static let urls: [URL] = (10..<40).compactMap { URL(string: "https://picsum.photos/id/\($0)/600/400") }

    var body: some View {
        NavigationStack {
            List(Self.urls, id: \.self) { url in
                AsyncImage(url: url) { image in
                    image.resizable().scaledToFit()
                } placeholder: {
                    ProgressView()
                }
                .frame(minHeight: 200)
            }
            .navigationTitle("Pictures")
        }
    }
}
