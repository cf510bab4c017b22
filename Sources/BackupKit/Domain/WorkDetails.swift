/// What tells few works of one title, author and year from each other: most entries say nothing of it.
struct WorkDetails {
    let type: String
    /// The field `type`, "PhD thesis".
    let typeText: String?
    let translator: String?
    let origdate: String?
    let eventdate: String?
    let series: String?
    let url: String?
    /// What was said where, and where it was published.
    let occasions: [String?]

    func differ(from other: WorkDetails) -> Bool {
        if let degree, let theirs = other.degree, degree != theirs { return true }
        if let mine = translator, let theirs = other.translator {
            let (mine, theirs) = (WorkText.people(mine).people, WorkText.people(theirs).people)
            if !mine.contains(where: { one in theirs.contains { one.mayBe($0) } }) { return true }
        }
        if let mine = year(origdate), let theirs = year(other.origdate), mine != theirs { return true }
        if WorkPlace.areOtherDates(dates(eventdate), dates(other.eventdate), alsoYears: true) { return true }
        let (numbers, theirs) = (numbers(series), numbers(other.series))
        if !numbers.isEmpty, !theirs.isEmpty, numbers != theirs { return true }
        if let address, let theirs = other.address, address != theirs { return true }
        return zip(occasions, other.occasions).contains { WorkPlace.areOtherTexts($0, $1) }
    }

    /// The same as text, part by part; empty where nothing is said.
    var texts: [String] {
        let said: [(String, String?)] = [
            ("degree", degree), ("translator", translator), ("origdate", year(origdate)),
            ("eventdate", WorkPlace.date(dates(eventdate))), ("series", numbers(series).joined(separator: " ")),
            ("address", address),
        ]
        let places = occasions.enumerated().map { place, text in ("occasion \(place)", text) }
        return (said + places).compactMap { name, value in
            value.map { WorkText.folded($0) }.flatMap { $0.isEmpty ? nil : "\(name) \($0)" }
        }
    }

    /// A thesis may have been written twice under one title.
    private var degree: String? {
        let word = WorkText.folded(typeText ?? "")
        func says(_ words: [String]) -> Bool { words.contains(where: word.contains) }
        switch type {
        case "phdthesis", "mastersthesis", "thesis":
            if says(["phd", "doctor", "dissertation", "dphil"]) { return "doctor" }
            if says(["master", "mathesis", "msc", "diplom"]) { return "master" }
            if says(["bachelor", "bathesis", "bsc"]) { return "bachelor" }
            return type == "phdthesis" ? "doctor" : type == "mastersthesis" ? "master" : nil
        default: return nil
        }
    }

    /// A page of the web is what its address says.
    private var address: String? {
        guard let url, ["misc", "online", "electronic", "www"].contains(type) else { return nil }
        var rest = url.lowercased()[...]
        for start in ["https://", "http://", "www."] where rest.hasPrefix(start) { rest = rest.dropFirst(start.count) }
        while rest.last == "/" { rest = rest.dropLast() }
        return rest.isEmpty ? nil : String(rest)
    }

    private func year(_ text: String?) -> String? {
        text.flatMap { text in
            let digits = text.drop { !$0.isNumber }.prefix { $0.isNumber }
            return digits.isEmpty ? nil : String(digits)
        }
    }

    private func dates(_ text: String?) -> WorkPlace.Dates {
        WorkPlace.Dates(year: nil, date: text, month: nil, day: nil, season: nil)
    }

    private func numbers(_ text: String?) -> [String] {
        (text ?? "").split { !$0.isNumber }.map(String.init)
    }
}
