/// Which work a publication is, whatever its cite key: by strong identifiers (DOI and its kin), by title, authors and year
/// together, or by its whole text.
public struct WorkIdentity {
    /// What two publications say about being one work.
    public enum Verdict: Sendable { case same, different, unknown }

    private enum Name: Int, CaseIterable {
        case citeKey, entryType, doi, url, eprint, archiveprefix, eprinttype, pmid, adsurl, bibcode, isbn, pages,
            chapter,
            eid, number, volume, title, author, editor, year, date
        case journal, journaltitle, booktitle, issue, articleno, month, day, edition, subtitle, titleaddon
        case part, version, maintitle, crossref, school, institution
        case season, type, translator, origdate, eventdate, eventtitle, venue, howpublished, series, articleNumber
        case booksubtitle, booktitleaddon, mainsubtitle, maintitleaddon, issuetitle, issuesubtitle, journalsubtitle,
            origyear
    }

    private static let names = Name.allCases.map { Array(($0 == .articleNumber ? "article-number" : "\($0)").utf8) }

    private var values = [String?](repeating: nil, count: Name.allCases.count)
    private let fields: [Field]

    init(_ fields: [Field]) {
        self.fields = fields
        for field in fields {
            var name = field.name
            guard let place = name.withUTF8({ Self.place(of: UnsafeRawBufferPointer($0)) }), values[place] == nil else {
                continue
            }
            values[place] = Fields.string(field.name, in: [field])
        }
    }

    /// Of the members that a pen has marked; it builds nothing but the values it needs, and knows no `text`.
    init(_ pen: borrowing JSONPen) {
        fields = []
        let bytes = pen.written
        for (name, value) in pen.members where bytes[value.lowerBound] == UInt8(ascii: "\"") {
            guard let place = Self.place(of: UnsafeRawBufferPointer(rebasing: bytes[name])) else { continue }
            values[place] = jsonUnescape(bytes, value.dropFirst().dropLast())
        }
    }

    private static func place(of name: UnsafeRawBufferPointer) -> Int? {
        names.firstIndex { $0.count == name.count && $0.elementsEqual(name) }
    }

    var key: String { values[Name.citeKey.rawValue] ?? "" }

    /// All that the entry says, whatever it is called: its type and fields, sorted by name.
    var text: String { Self.text(of: fields.filter { !Self.isNoText($0.name) }) }

    private static func text(of fields: [Field]) -> String {
        Fields.text(fields.sorted { precedesBytewise($0.name, $1.name) })
    }

    /// The same as BibTeX reads it: without the case of the type, and with any white space in a value as one space.
    var meaning: String {
        let read = fields.lazy.filter { !Self.isNoText($0.name) }.map { field in
            guard let value = Fields.string(field.name, in: [field]) else { return field }
            let words = WorkText.words(value)
            return Field(field.name, .string(field.name == Self.typeField ? words.lowercased() : words))
        }
        return Self.text(of: Array(read))
    }

    static let keyField = "citeKey"
    private static let typeField = "entryType"

    /// The key is a label, the raw text holds it, and files are linked by whoever keeps them.
    static func isNoText(_ name: String) -> Bool {
        name == keyField || RawText.holds(name) || name == "linkedFiles"
    }

    /// Whether a field tells which work a publication is.
    static func tells(_ name: String) -> Bool {
        var name = name
        return name != keyField && name.withUTF8 { place(of: UnsafeRawBufferPointer($0)) } != nil
    }

    private func value(_ name: Name) -> String? {
        guard let value = values[name.rawValue], !value.isEmpty else { return nil }
        return value
    }

    private var type: String { (value(.entryType) ?? "").lowercased() }
    /// A chapter, a paper in proceedings: it may carry the identifier of the book that it stands in.
    private var isPart: Bool {
        ["inbook", "incollection", "inproceedings", "conference", "bookinbook", "suppbook", "inreference"].contains(
            type)
    }
    private var isWhole: Bool {
        [
            "book", "mvbook", "collection", "mvcollection", "proceedings", "mvproceedings", "reference", "manual",
            "booklet",
        ]
        .contains(type)
    }

    // MARK: Evidence

    /// The identifiers of each kind.
    func identifiers(_ kind: WorkIdentifier.Kind) -> Set<String> {
        func one(_ found: String?) -> Set<String> { found.map { [$0] } ?? [] }
        switch kind {
        case .doi: return one(doi.flatMap { WorkIdentifier.arxiv(ofDOI: $0) == nil ? $0 : nil })
        case .arxiv: return one(arxiv ?? doi.flatMap { WorkIdentifier.arxiv(ofDOI: $0) })
        case .pmid:
            let eprint = archive == "pubmed" ? value(.eprint) : nil
            return one(
                (value(.pmid) ?? eprint).flatMap { WorkIdentifier.pmid($0) }
                    ?? value(.url).flatMap { WorkIdentifier.pmid(inAddress: $0) })
        case .bibcode: return one(bibcode.bibcode)
        case .isbn: return Set(isbns)
        }
    }

    private var doi: String? {
        value(.doi).flatMap { WorkIdentifier.doi($0) } ?? value(.url).flatMap { WorkIdentifier.doi(inAddress: $0) }
    }

    private var archive: String { (value(.archiveprefix) ?? value(.eprinttype) ?? "").lowercased() }

    private var arxiv: String? {
        let eprint = archive.isEmpty || archive == "arxiv" ? value(.eprint).flatMap { WorkIdentifier.arxiv($0) } : nil
        return eprint ?? value(.url).flatMap { WorkIdentifier.arxiv(inAddress: $0) } ?? bibcode.arxiv
    }

    private var bibcode: (bibcode: String?, arxiv: String?) {
        guard let code = value(.bibcode) ?? value(.adsurl) else { return (nil, nil) }
        return WorkIdentifier.bibcode(code)
    }

    /// An ISBN names a whole book. Of a part it says something only together with its place in the book.
    private var isbns: [String] {
        guard let field = value(.isbn), type != "article" else { return [] }
        let found = WorkIdentifier.isbns(field)
        guard isPart else { return found }
        guard let place = value(.chapter).map({ "chapter \(WorkText.folded($0))" }) ?? firstPage else { return [] }
        return found.map { "\($0) \(place)" }
    }

    private var firstPage: String? {
        value(.pages).map { WorkText.folded($0.prefix { $0 != "-" && $0 != "\u{2013}" && $0 != "," }) }
            .flatMap { $0.isEmpty ? nil : $0 }
    }

    var title: String? { value(.title).map { WorkText.folded($0) }.flatMap { $0.isEmpty ? nil : $0 } }

    /// The title as it is written.
    var titleText: String { value(.title) ?? "" }

    var people: (people: [WorkText.Person], areAll: Bool)? {
        guard let field = value(.author) ?? value(.editor) else { return nil }
        let found = WorkText.people(field)
        return found.people.isEmpty ? nil : found
    }

    var year: String? {
        guard let text = value(.year) ?? value(.date) else { return nil }
        let digits = text.drop { !$0.isNumber }.prefix { $0.isNumber }
        return digits.count == 4 ? (text.hasPrefix("-") ? "-" : "") + digits : nil
    }

    /// What the work is known by, the strongest first; its text comes after all of these.
    var evidence: [String] {
        WorkIdentifier.Kind.allCases.flatMap { evidence($0) } + (description.map { [$0] } ?? [])
    }

    /// The first of them, and no work for the others.
    var firstEvidence: String? {
        for kind in WorkIdentifier.Kind.allCases { if let found = evidence(kind).first { return found } }
        return description
    }

    private func evidence(_ kind: WorkIdentifier.Kind) -> [String] {
        identifiers(kind).sorted().map { "\(kind.rawValue):\($0)" }
    }

    /// Title, authors and year, if all are there.
    private var description: String? {
        guard let title, let people, let year else { return nil }
        let names = people.people.map { "\($0.family) \($0.initial)" } + (people.areAll ? [] : ["others"])
        return "work:\(title)|\(names.joined(separator: ","))|\(year)"
    }

    // MARK: Two publications

    /// `isRelated`: it is known from elsewhere that these are one entry at two times, unless they contradict each other. A
    /// place in a journal may have been corrected, and an equal title is enough.
    func verdict(_ other: WorkIdentity, isRelated: Bool = false) -> Verdict {
        if saysTheSame(as: other) { return .same }
        for kind in WorkIdentifier.Kind.allCases {
            let (mine, theirs) = (identifiers(kind), other.identifiers(kind))
            if mine.isEmpty || theirs.isEmpty { continue }
            if mine.isDisjoint(with: theirs) { return .different }
            let isSet = kind == .isbn && !isRelated && areVolumes(other, mine, theirs)
            return isSet || contradicts(other) ? .different : .same
        }
        let (title, theirTitle) = (title, other.title)
        if isRelated, let title, title == theirTitle, !contradictsPeopleOrYear(of: other) { return .same }
        guard let people, let theirs = other.people, title != nil, theirTitle != nil else { return .unknown }
        // Other people, whatever the title: every year has its "Introduction".
        if Self.areStrangers(people.people, theirs.people) { return .different }
        guard title == theirTitle, let year, year == other.year, Self.areSame(people, theirs) else { return .unknown }
        return hasOtherPlace(than: other) ? .different : .same
    }

    /// Whether both have equal texts.
    private func saysTheSame(as other: WorkIdentity) -> Bool {
        let mine = fields.filter { !Self.isNoText($0.name) }
        let theirs = other.fields.filter { !Self.isNoText($0.name) }
        return mine.count == theirs.count
            && mine.allSatisfy { field in
                theirs.contains { sameBytes($0.name, field.name) && sameBytes($0.value, field.value) }
            }
    }

    private func contradictsPeopleOrYear(of other: WorkIdentity) -> Bool {
        if let people, let theirs = other.people, Self.areStrangers(people.people, theirs.people) { return true }
        guard let year, let theirs = other.year else { return false }
        return year != theirs
    }

    /// Parts of one book that all carry the book's DOI, or a DOI copied to another paper by mistake.
    private func contradicts(_ other: WorkIdentity) -> Bool {
        guard title != nil, other.title != nil, !titlesAgree(other) else { return false }
        if isPart && other.isWhole || isWhole && other.isPart { return true }
        if let mine = firstPage, let theirs = other.firstPage, mine != theirs { return true }
        if let mine = value(.chapter), let theirs = other.value(.chapter), mine != theirs { return true }
        guard let people, let theirs = other.people else { return false }
        return Self.areStrangers(people.people, theirs.people)
    }

    /// Volumes of a set share its ISBN.
    private func areVolumes(_ other: WorkIdentity, _ mine: Set<String>, _ theirs: Set<String>) -> Bool {
        if WorkPlace.differ(value(.volume), other.value(.volume)) { return true }
        guard title != nil, other.title != nil, !titlesAgree(other) else { return false }
        let (words, others) = (Self.words(titleText), Self.words(other.titleText))
        if words.filter(Self.isNumber) != others.filter(Self.isNumber) { return true }
        return !mine.isSubset(of: theirs) && !theirs.isSubset(of: mine) || year != other.year
            || Set(words).isDisjoint(with: others)
    }

    /// With or without a subtitle a title is the same; two that are missing are not.
    func titlesAgree(_ other: WorkIdentity) -> Bool {
        guard let mine = title, let theirs = other.title else { return false }
        return mine.hasPrefix(theirs) || theirs.hasPrefix(mine)
    }

    /// Whether journal, volume, issue or page differ. Year and entry type do not count here: people correct them.
    func isElsewhere(than other: WorkIdentity) -> Bool { !otherPlaces(than: other).isEmpty }

    /// The fields that say where it appeared, where that is elsewhere. Pages count by the first one, a journal's name also
    /// when it is shortened.
    func otherPlaces(than other: WorkIdentity) -> [String] {
        var names = (Self.places + Self.rarePlaces).filter { WorkPlace.differ(place($0), other.place($0)) }
        if WorkPlace.differ(firstPage, other.firstPage) { names.append(.pages) }
        if WorkPlace.areOtherJournals(container, other.container) {
            names += [.journal, .journaltitle, .booktitle].filter { value($0) != other.value($0) }
        }
        if WorkPlace.areOtherSchools(school, other.school) { names += [.school, .institution] }
        // Its book stands elsewhere in the file, under a key that says which one it is.
        if container == nil, other.container == nil, WorkPlace.differ(value(.crossref), other.value(.crossref)) {
            names.append(.crossref)
        }
        return names.map { "\($0)" }
    }

    /// Every issue has an "Editorial", and a thesis becomes an article.
    func hasOtherPlace(than other: WorkIdentity) -> Bool {
        isElsewhere(than: other) || WorkPlace.areOfOtherKinds(type, other.type)
            || WorkPlace.areOtherDates(dates, other.dates) || details.differ(from: other.details)
    }

    private static let places = [
        Name.volume, .number, .issue, .chapter, .eid, .articleno, .edition, .subtitle, .titleaddon,
    ]
    private func place(_ name: Name) -> String? {
        name == .edition ? value(name).map { WorkPlace.edition($0) } : value(name)
    }

    private static let rarePlaces = [Name.part, .version, .maintitle, .articleNumber]

    /// All that says where it appeared, when and as what, and by which people of one name; empty where nothing does.
    var place: String {
        let texts = [container, firstPage] + Self.places.map(place) + [WorkPlace.kind(type), WorkPlace.date(dates)]
        let common = texts.map { $0.map { WorkText.folded($0) } ?? "" }
        // What few entries have adds nothing to the places of all others, and so to their ids.
        let names = Self.rarePlaces + [.school, .institution] + (container == nil ? [.crossref] : [])
        let initials = people?.people.map(\.otherInitials) ?? []
        let rare =
            names.compactMap { name in value(name).map { "\(name) \(WorkText.folded($0))" } }
            + (initials.allSatisfy(\.isEmpty) ? [] : ["people \(initials.joined(separator: ","))"]) + details.texts
        return rare.isEmpty && texts.allSatisfy { $0 == nil } ? "" : (common + rare).joined(separator: "|")
    }

    /// Empty where it has none.
    var volume: String { value(.volume).map { WorkText.folded($0) } ?? "" }

    /// How many identifiers its evidence begins with; ISBNs are the last of them.
    var identifierCount: Int { WorkIdentifier.Kind.allCases.reduce(0) { $0 + identifiers($1).count } }

    /// What it appeared in.
    private var container: String? { value(.journal) ?? value(.journaltitle) ?? value(.booktitle) }

    private var school: String? { value(.school) ?? value(.institution) }

    private var dates: WorkPlace.Dates {
        WorkPlace.Dates(
            year: value(.year), date: value(.date), month: value(.month), day: value(.day), season: value(.season))
    }

    private var details: WorkDetails {
        WorkDetails(
            type: type, typeText: value(.type), translator: value(.translator),
            origdate: value(.origdate) ?? value(.origyear), eventdate: value(.eventdate), series: value(.series),
            url: value(.url), names: Self.namesOfDetails.map(value))
    }

    private static let namesOfDetails = [
        Name.eventtitle, .venue, .howpublished, .booksubtitle, .booktitleaddon, .mainsubtitle, .maintitleaddon,
        .issuetitle, .issuesubtitle, .journalsubtitle,
    ]

    static func areStrangers(_ left: [WorkText.Person], _ right: [WorkText.Person]) -> Bool {
        !left.contains { mine in right.contains { mine.mayBe($0) } }
    }

    static func areSame(
        _ left: (people: [WorkText.Person], areAll: Bool), _ right: (people: [WorkText.Person], areAll: Bool)
    ) -> Bool {
        let (count, other) = (left.people.count, right.people.count)
        // A list that ends in "and others" may be shorter than the whole one.
        guard count == other || count < other && !left.areAll || count > other && !right.areAll else { return false }
        return zip(left.people, right.people).allSatisfy { $0.mayBe($1) }
    }
}
