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
    ]

    /// "J. Cats", "Journal of Cats" and "JoC" may be one, "J. Dogs" is another.
    static func areOtherJournals(_ mine: String?, _ theirs: String?) -> Bool {
        guard let mine, let theirs else { return false }
        let (left, right) = (words(mine), words(theirs))
        guard !left.isEmpty, !right.isEmpty else { return false }
        return !isShort(left, of: right) && !isShort(right, of: left)
    }

    /// Without small words, and without the letters of a country at the end.
    private static func words(_ journal: String) -> [String] {
        let small: Set = ["of", "the", "and", "for", "in", "on", "de", "des", "der", "die", "und", "fur", "la", "le"]
        var words = journal.split {
            $0 == " " || $0 == "." || $0 == "-" || $0 == "/" || $0 == "~" || $0 == ":" || $0 == ","
        }
        .map { WorkText.folded($0) }.filter { !$0.isEmpty && !small.contains($0) }
        while words.count > 1, let last = words.last, last.count == 1 || last == "usa" { words.removeLast() }
        return words
    }

    /// Whether `short` are the words of `long`, shortened, or their first letters.
    private static func isShort(_ short: [String], of long: [String]) -> Bool {
        if short.joined() == long.joined() { return true }
        if short.count == 1, short[0].elementsEqual(long.compactMap(\.first)) { return true }
        guard short.count == long.count else { return false }
        return zip(short, long).allSatisfy { word, whole in
            // "Natl." of "National": the first letter, and the others in their order.
            guard word.first == whole.first else { return false }
            var rest = whole[...]
            return word.allSatisfy { letter in
                guard let place = rest.firstIndex(of: letter) else { return false }
                rest = rest[rest.index(after: place)...]
                return true
            }
        }
    }

    /// Of two dates the parts that both have are compared: year and what stands behind it, month, day.
    static func areOtherDates(_ mine: [String], _ theirs: [String]) -> Bool {
        let (left, right) = (parts(mine), parts(theirs))
        return left.contains { name, value in right[name].map { $0 != value } ?? false }
    }

    /// What dates say besides the year; nil where that is nothing.
    static func date(_ texts: [String]) -> String? {
        let parts = parts(texts)
        return parts.isEmpty ? nil : ["letter", "month", "day"].map { parts[$0] ?? "" }.joined(separator: "-")
    }

    private static func parts(_ texts: [String]) -> [String: String] {
        var found: [String: String] = [:]
        for text in texts {
            let pieces = text.split { $0 == "-" || $0 == "/" }
            if let year = pieces.first, year.count >= 4, year.prefix(4).allSatisfy(\.isNumber) {
                let behind = year.dropFirst(4)
                if behind.count == 1, behind.allSatisfy(\.isLetter) { found["letter"] = behind.lowercased() }
                if pieces.count > 1 { found["month"] = month(String(pieces[1])) }
                if pieces.count > 2 { found["day"] = Int(pieces[2]).map(String.init) }
            } else if let month = month(text) {
                found["month"] = found["month"] ?? month
            }
        }
        return found
    }

    private static func month(_ text: String) -> String? {
        if let number = Int(text) { return 1...12 ~= number ? String(number) : nil }
        let names = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
        let found = names.firstIndex(of: String(WorkText.folded(text).prefix(3)))
        return found.map { String($0 + 1) }
    }
}
