extension WorkIdentity {
    /// Whether a field says of the work itself what it is or where it appeared.
    static func isOfWork(_ name: String) -> Bool {
        tells(name) || WorkPlace.fields.contains(name.lowercased()) || name.hasPrefix("bdsk-url-")
    }

    /// Whether an entry that somebody takes for this one may say what this one does not: nothing of it tells of another work.
    func mayBeFilled(from other: WorkIdentity) -> Bool {
        verdict(other) == .same || verdict(other, isRelated: true) == .same && !hasOtherPlace(than: other)
    }
}

/// Where and when works of one title and author appeared, as two entries say it.
enum WorkPlace {
    /// Fields that a catalogue has of a work, beside those by which two entries are compared (`WorkIdentity.tells`). All else,
    /// such as an abstract, a note or keywords, is what people have added.
    static let fields: Set<String> = [
        "authors", "publisher", "series", "school", "institution", "organization", "address", "location", "venue",
        "howpublished", "type", "issn", "isrn", "eprintclass", "primaryclass", "archive", "pmcid", "arxivid",
        "mrnumber",
        "zblnumber", "zbl", "lccn", "oclc", "crossref", "xref", "xdata", "translator", "editora", "editorb", "editorc",
        "editortype", "authortype", "bookauthor", "holder", "collaboration", "foreword", "afterword", "introduction",
        "annotator", "commentator", "maintitle", "mainsubtitle", "maintitleaddon", "booksubtitle", "booktitleaddon",
        "journalsubtitle", "shortjournal", "journalabbr", "issuetitle", "issuesubtitle", "shorttitle", "part",
        "volumes",
        "pagetotal", "numpages", "eventtitle", "eventdate", "day", "origdate", "origtitle", "origpublisher",
        "origlocation", "origlanguage", "version", "language", "urldate", "articleid", "reportnumber",
    ]

    static func differ(_ mine: String?, _ theirs: String?) -> Bool {
        guard let mine, let theirs else { return false }
        return WorkText.folded(mine) != WorkText.folded(theirs)
    }

    /// An article is no thesis. Types that say little (`misc`, `online`) may be any.
    static func areOfOtherKinds(_ mine: String, _ theirs: String) -> Bool {
        guard let mine = kinds[mine], let theirs = kinds[theirs] else { return false }
        return mine != theirs
    }

    static func kind(_ type: String) -> String? { kinds[type] }

    private static let kinds: [String: String] = [
        "article": "article", "inproceedings": "paper", "conference": "paper", "incollection": "part", "inbook": "part",
        "phdthesis": "thesis", "mastersthesis": "thesis", "thesis": "thesis", "techreport": "report",
        "report": "report", "book": "book", "mvbook": "book", "proceedings": "proceedings", "patent": "patent",
        "dataset": "data", "software": "software", "movie": "film", "video": "film", "audio": "audio", "music": "audio",
        "image": "image", "artwork": "image", "performance": "performance",
    ]

    /// "J. Cats", "Journal of Cats" and "JoC" may be one, "J. Dogs" is another.
    static func areOtherJournals(_ mine: String?, _ theirs: String?) -> Bool {
        guard let mine, let theirs else { return false }
        let (left, right) = (words(mine), words(theirs))
        guard !left.isEmpty, !right.isEmpty else { return false }
        let (mySection, theirSection) = (section(left), section(right))
        if let mySection, let theirSection, mySection != theirSection { return true }
        // The last letter of "Astrophys. J." is no section.
        if isShort(left, of: right) || isShort(right, of: left) { return false }
        let (myName, theirName) = (withoutSection(left, mySection), withoutSection(right, theirSection))
        return !isShort(myName, of: theirName) && !isShort(theirName, of: myName)
    }

    /// Of other schools no word is the same, unless one is written by its first letters.
    static func areOtherSchools(_ mine: String?, _ theirs: String?) -> Bool {
        guard let mine, let theirs, areOtherJournals(mine, theirs) else { return false }
        let small: Set = ["university", "universitat", "universite", "univ", "institute", "school", "college"]
        return Set(words(mine)).subtracting(small).isDisjoint(with: Set(words(theirs)).subtracting(small))
    }

    /// Whether two texts name two occasions, such as two talks: each has a word that the other one lacks, and neither is the
    /// abbreviation of the other, as "NIPS" is.
    static func areOtherTexts(_ mine: String?, _ theirs: String?) -> Bool {
        guard let mine, let theirs else { return false }
        let (left, right) = (words(mine), words(theirs))
        if isShort(left, of: right) || isShort(right, of: left) { return false }
        return !Set(left).isSubset(of: right) && !Set(right).isSubset(of: left)
    }

    /// The number of an edition: "2nd", "Second" and "2" are one.
    static func edition(_ text: String) -> String {
        let name = WorkText.folded(text)
        let number = name.prefix { $0.isNumber }
        if !number.isEmpty, !name.dropFirst(number.count).contains(where: \.isNumber) { return String(number) }
        let words = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
        return words.firstIndex { name.hasPrefix($0) }.map { String($0 + 1) } ?? name
    }

    /// "A" of "Physical Review A", "2" of "Part 2".
    private static func section(_ words: [String]) -> String? {
        words.last.flatMap { words.count > 1 && ($0.count == 1 || isNumber($0)) ? $0 : nil }
    }

    private static func withoutSection(_ words: [String], _ section: String?) -> [String] {
        let names: Set = ["section", "sect", "sec", "series", "ser", "part", "pt"]
        let rest = section == nil ? words : words.dropLast()
        return rest.count > 1 && rest.last.map(names.contains) == true ? rest.dropLast() : rest
    }

    /// "12", or "iii": such a word is not shortened.
    private static func isNumber(_ word: String) -> Bool {
        word.allSatisfy(\.isNumber) || word.allSatisfy { "ivx".contains($0) }
    }

    /// Without small words, and without a country at the end.
    private static func words(_ journal: String) -> [String] {
        let small: Set = ["of", "the", "and", "for", "in", "on", "de", "des", "der", "die", "und", "fur", "la", "le"]
        var words = withoutRemarks(journal).split {
            $0 == " " || $0 == "." || $0 == "-" || $0 == "/" || $0 == "~" || $0 == ":" || $0 == ","
        }
        .map { WorkText.folded($0) }.filter { !$0.isEmpty && !small.contains($0) }
        for country in [["u", "s", "a"], ["usa"], ["u", "s"], ["u", "k"]]
        where words.count > country.count && words.suffix(country.count).elementsEqual(country) {
            words.removeLast(country.count)
        }
        return words
    }

    /// "Science (New York, N.Y.)" is "Science"; "(A)" may be a section.
    private static func withoutRemarks(_ journal: String) -> String {
        guard let start = journal.firstIndex(of: "("), let end = journal[start...].firstIndex(of: ")"),
            start > journal.startIndex, journal.distance(from: start, to: end) > 3
        else { return journal }
        return journal[..<start] + " " + journal[journal.index(after: end)...]
    }

    /// Whether letters are the first ones of all words, as in "PRD", where more letters of a word may follow, as in "ApJ".
    private static func areFirstLetters(_ letters: Substring, of words: ArraySlice<String>) -> Bool {
        guard let word = words.first else { return letters.isEmpty }
        guard let first = letters.first, first == word.first else { return false }
        var (rest, left) = (word.dropFirst(), letters.dropFirst())
        if areFirstLetters(left, of: words.dropFirst()) { return true }
        while let next = left.first, let place = rest.firstIndex(of: next) {
            (rest, left) = (rest[rest.index(after: place)...], left.dropFirst())
            if areFirstLetters(left, of: words.dropFirst()) { return true }
        }
        return false
    }

    /// Whether `short` are the words of `long`, shortened, or their first letters.
    private static func isShort(_ short: [String], of long: [String]) -> Bool {
        if short.joined() == long.joined() { return true }
        if short.count == 1, long.count > 1, short[0].count <= 6, areFirstLetters(short[0][...], of: long[...]) {
            return true
        }
        guard short.count == long.count else { return false }
        return zip(short, long).allSatisfy { word, whole in
            // "Natl." of "National": the first letter, and the others in their order.
            guard word.first == whole.first, !isNumber(word) && !isNumber(whole) || word == whole else { return false }
            var rest = whole[...]
            return word.allSatisfy { letter in
                guard let place = rest.firstIndex(of: letter) else { return false }
                rest = rest[rest.index(after: place)...]
                return true
            }
        }
    }

    /// What an entry says of its date, by the fields that say it.
    struct Dates {
        let year: String?
        let date: String?
        let month: String?
        let day: String?
        let season: String?
    }

    /// Of two dates the parts that both have are compared: what stands behind the year, month or season, day.
    static func areOtherDates(_ mine: Dates, _ theirs: Dates) -> Bool {
        let (left, right) = (parts(mine), parts(theirs))
        return left.contains { name, value in right[name].map { $0 != value } ?? false }
    }

    /// What dates say besides the year; nil where that is nothing.
    static func date(_ dates: Dates) -> String? {
        let parts = parts(dates)
        let common = ["letter", "month", "day"].map { parts[$0] ?? "" }
        let ends = ["year", "month", "day", "season"].compactMap { name in parts["end \(name)"].map { "\(name) \($0)" }
        }
        return parts.isEmpty ? nil : (common + [parts["season"]].compactMap(\.self) + ends).joined(separator: "-")
    }

    private static func parts(_ dates: Dates) -> [String: String] {
        var found: [String: String] = [:]
        for text in [dates.year, dates.date].compactMap(\.self) where text.utf8.count > 4 {
            let pieces = text.split { $0 == "-" || $0 == "/" || $0 == "\u{2013}" }
            let end = pieces.indices.dropFirst().first { beginsWithYear(pieces[$0]) } ?? pieces.count
            addDate(pieces[..<end], to: &found)
            if end < pieces.count {
                found["end year"] = String(pieces[end].prefix(4))
                var last: [String: String] = [:]
                addDate(pieces[end...], to: &last)
                for (name, value) in last { found["end \(name)"] = value }
            }
            let words = text.split { !$0.isLetter && !$0.isNumber }.filter { Int($0) == nil || $0.count < 4 }
            if words.contains(where: { Int($0) == nil && month(String($0)) != nil }) {
                addMonth(of: words.joined(separator: " "), to: &found)
            }
        }
        if let text = dates.month { addMonth(of: text, to: &found) }
        if let text = dates.season { found["season"] = found["season"] ?? season(text) }
        if let day = dates.day.flatMap({ Int($0) }) { found["day"] = found["day"] ?? String(day) }
        return found
    }

    private static func beginsWithYear(_ text: Substring) -> Bool {
        text.count >= 4 && text.prefix(4).allSatisfy(\.isNumber)
    }

    /// Of "2001a", "2001-05-03" and "2001-21", which is spring, what stands behind the year.
    private static func addDate(_ pieces: ArraySlice<Substring>, to found: inout [String: String]) {
        guard let year = pieces.first, beginsWithYear(year) else { return }
        let rest = pieces.dropFirst()
        let behind = year.dropFirst(4)
        if behind.count == 1, behind.allSatisfy(\.isLetter) { found["letter"] = behind.lowercased() }
        guard let second = rest.first else { return }
        if let number = Int(second), 21...24 ~= number {
            found["season"] = ["spring", "summer", "autumn", "winter"][number - 21]
        } else {
            found["month"] = month(String(second))
            if rest.count > 1, let day = rest.last.flatMap({ Int($0) }) { found["day"] = String(day) }
        }
    }

    private static func season(_ text: String) -> String {
        let name = WorkText.folded(text)
        return name == "fall" ? "autumn" : name
    }

    /// Of "3 January" and "May 3" month and day; "Spring", "Q1", "1--2" and "janvier" are whatever they are.
    private static func addMonth(of text: String, to found: inout [String: String]) {
        let words = text.split { !$0.isLetter && !$0.isNumber }.map(String.init)
        let names = words.filter { Int($0) == nil }.compactMap(month)
        let name = names.first
        guard let month = month(text) ?? name else {
            let season = season(text)
            if !season.isEmpty { found["season"] = season }
            return
        }
        found["month"] = found["month"] ?? month
        if let last = names.last, names.count > 1 { found["end month"] = found["end month"] ?? last }
        let day = name == nil ? nil : words.lazy.compactMap { Int($0) }.first { 1...31 ~= $0 }
        found["day"] = found["day"] ?? day.map(String.init)
    }

    private static func month(_ text: String) -> String? {
        if let number = Int(text) { return 1...12 ~= number ? String(number) : nil }
        let names = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
        let name = WorkText.folded(text)
        let found = names.firstIndex(of: String(name.prefix(3))).map { $0 + 1 }
        return (found ?? otherNames.first { name.hasPrefix($0.0) }?.1).map { String($0) }
    }

    /// How months begin in other languages, where that is not as in English.
    private static let otherNames = [
        ("ene", 1), ("gen", 1), ("fev", 2), ("mrz", 3), ("avr", 4), ("abr", 4), ("mai", 5), ("mei", 5), ("mag", 5),
        ("juin", 6), ("giu", 6), ("juil", 7), ("lug", 7), ("aou", 8), ("ago", 8), ("set", 9), ("okt", 10), ("ott", 10),
        ("out", 10), ("dez", 12), ("dic", 12),
    ]
}
