/// Where the files lie that an entry's fields name. Each name means the file whose place ends most like it, and two names in
/// the fields of one program mean two files, as long as there are so many.
struct BibLinkPlaces {
    typealias Link = BibEntryView.Link

    private let links: [Link]
    /// By the fields' program, and the paths as they are written.
    private var places: [String: [ByteName: String]] = [:]

    /// `fields` are those that may name files, in their order.
    init(_ fields: [(name: String, value: String)], _ links: [Link]) {
        self.links = links
        var names: [String: [BibFileLink]] = [:]
        for field in fields {
            names[Self.program(field.name), default: []] += BibFileLinks.links(field: field.name, value: field.value)
        }
        for (program, named) in names { places[program] = assign(named) }
    }

    /// The place of the file that a path means in a field of that name.
    func place(of path: String, in field: String) -> String? { places[Self.program(field)]?[ByteName(path)] }

    /// The files of BibDesk have a field each.
    private static func program(_ field: String) -> String {
        let name = field.lowercased()
        return name.hasPrefix(BibFileLinks.bibDeskPrefix) ? BibFileLinks.bibDeskPrefix : name
    }

    private struct Pair {
        let name: Int
        let link: Int
        /// What makes the two alike, the weightiest first; less is more.
        let rank: [Int]
        let isNumbered: Bool
    }

    /// A path that a file has, or had before it gave way to others.
    private struct Known {
        enum Form: Int { case now, former, numbered }

        let link: Int
        let path: String
        let form: Form
    }

    private func assign(_ named: [BibFileLink]) -> [ByteName: String] {
        var found: [ByteName: String] = [:]
        var used: Set<Int> = []
        func give(_ path: String, _ link: Int) {
            found[ByteName(path)] = links[link].place
            used.insert(link)
        }
        let known = known
        var exact: [ByteName: Int] = [:]
        for form in [Known.Form.now, .former] {
            for known in known where known.form == form && exact[ByteName(known.path)] == nil {
                exact[ByteName(known.path)] = known.link
            }
        }
        for name in named {
            let spellings = name.readings.flatMap { reading in [reading] + RecordFiles.folders.map { $0 + reading } }
            if let link = spellings.lazy.compactMap({ exact[ByteName($0)] }).first { give(name.path, link) }
        }
        let pairs = pairs(named.map { found[ByteName($0.path)] == nil ? $0 : nil }, known)
        for pair in pairs where found[ByteName(named[pair.name].path)] == nil && !used.contains(pair.link) {
            give(named[pair.name].path, pair.link)
        }
        // More names than files: two may mean one file, unless they name other folders.
        for pair in pairs where found[ByteName(named[pair.name].path)] == nil && !pair.isNumbered {
            let place = links[pair.link].place
            if named[pair.name].readings.contains(where: { Self.isEnd($0, place) }) {
                found[ByteName(named[pair.name].path)] = place
            }
        }
        return found
    }

    private var known: [Known] {
        links.enumerated().flatMap { index, link in
            [
                (link.place, .now), (RecordFiles.formerPath(link.place), .former),
                (Self.unnumbered(link.place), .numbered),
            ]
            .compactMap { path, form in path.map { Known(link: index, path: $0, form: form) } }
        }
    }

    /// `a.pdf` of `a_2.pdf`
    private static func unnumbered(_ path: String) -> String? {
        let name = lastComponent(of: path)
        let stem = name.lastIndex(of: ".").map { name[..<$0] } ?? name[...]
        guard let mark = stem.lastIndex(of: "_"), let number = Int(stem[mark...].dropFirst()),
            (2..<1000).contains(number)
        else { return nil }
        return "\(path.dropLast(name.count))\(stem[..<mark])\(name[stem.endIndex...])"
    }

    /// The names and links that may be one, the most alike first.
    private func pairs(_ named: [BibFileLink?], _ known: [Known]) -> [Pair] {
        let byName = Dictionary(grouping: known) { lastComponent(of: $0.path) }
        var pairs: [Pair] = []
        for (name, link) in named.enumerated() {
            for reading in link?.readings ?? [] {
                let file = lastComponent(of: reading)
                for known in byName[file] ?? [] {
                    let isNumbered = known.form == .numbered
                    let common = FilePath.commonEnd(reading, known.path)
                    let rest = FilePath.names(known.path).count - common
                    let isSpelledSo = sameBytes(file, lastComponent(of: known.path))
                    let rank = [
                        isNumbered ? 1 : 0, -common, known.form.rawValue, isSpelledSo ? 0 : 1, rest, name, known.link,
                    ]
                    pairs.append(Pair(name: name, link: known.link, rank: rank, isNumbered: isNumbered))
                }
            }
        }
        return pairs.sorted { $0.rank.lexicographicallyPrecedes($1.rank) }
    }

    /// Whether one of two paths, below the folders of attachments, is how the other ends.
    private static func isEnd(_ name: String, _ place: String) -> Bool {
        func inner(_ path: String) -> String {
            RecordFiles.folders.first(where: path.hasPrefix).map { String(path.dropFirst($0.count)) } ?? path
        }
        let (name, place) = (inner(name), inner(RecordFiles.formerPath(place) ?? place))
        func count(_ path: String) -> Int { FilePath.names(path).count }
        return FilePath.commonEnd(name, place) >= min(count(name), count(place))
    }
}
