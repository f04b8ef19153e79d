/// An array whose elements lie in pages. A copy shares the pages, and a change copies the one that it is in, not all.
struct PagedArray<Element: Sendable>: Sendable {
    private static var pageLength: Int { 1_024 }

    private var pages: [[Element]] = []
    private(set) var count = 0

    subscript(position: Int) -> Element {
        get { pages[position / Self.pageLength][position % Self.pageLength] }
        set { pages[position / Self.pageLength][position % Self.pageLength] = newValue }
    }

    mutating func append(_ element: Element) {
        if count % Self.pageLength == 0 { pages.append([]) }
        pages[pages.count - 1].append(element)
        count += 1
    }
}
