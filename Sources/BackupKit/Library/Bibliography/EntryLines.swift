/// Lines of ours that stand before the entries of an export, until their entries come. They name its key: whoever deletes an
/// entry in an editor leaves them behind, and some programs move all comments to the top of a file.
struct EntryLines {
    /// What the lines of one entry say: its files, and what is different from how it was imported.
    struct Lines {
        var links: [String] = []
        var marks: [String] = []
    }

    private static let entry = "entry = "
    private static let file = "file = "

    private var waiting: [String: [Lines]] = [:]
    private var key: String?
    /// Version 0.1.0 named no key: its lines belong to the next entry.
    private var unnamed = Lines()

    /// What to write before an entry, without the lines' beginning.
    static func lines(for key: String, places: [String], marks: [String]) -> [String] {
        let lines = places.map { file + BibMark.escaped(Array($0.utf8)) } + marks
        return lines.isEmpty || key.isEmpty ? lines : [entry + BibMark.escaped(Array(key.utf8))] + lines
    }

    /// Takes a line, unless it is none of these.
    mutating func take(_ text: String) -> Bool {
        if text.hasPrefix(Self.entry) {
            key = Self.value(of: text, Self.entry)
            waiting[key ?? "", default: []].append(Lines())
        } else if text.hasPrefix(Self.file) {
            note { $0.links.append(Self.value(of: text, Self.file)) }
        } else if BibEntryView.isMark(text) {
            note { $0.marks.append(text) }
        } else {
            return false
        }
        return true
    }

    private static func value(of text: String, _ name: String) -> String {
        String(decoding: BibMark.unescaped(text.dropFirst(name.count)), as: UTF8.self)
    }

    private mutating func note(_ change: (inout Lines) -> Void) {
        guard let key, let last = waiting[key]?.indices.last else { return change(&unnamed) }
        change(&waiting[key, default: []][last])
    }

    /// The lines of an entry that has come.
    mutating func lines(of key: String) -> Lines {
        defer { (self.key, unnamed) = (nil, Lines()) }
        guard let lines = waiting[key]?.first else { return unnamed }
        waiting[key]?.removeFirst()
        return lines
    }

    /// Keys of entries whose files are named, and that did not come.
    var keysLeft: [String] { waiting.filter { $0.value.contains { !$0.links.isEmpty } }.keys.sorted() }
}
