/// What tells works of one title, author and year apart where an entry says it; most entries do not.
struct WorkDetails {
    let type: String
    /// The field `type`, "PhD thesis".
    let typeText: String?
    let translator: String?
    let origdate: String?
    let eventdate: String?
    let series: String?
    let url: String?
    /// The event, its venue, how the work was published, and what the names of its book, journal and issue add.
    let names: [String?]

    func differ(from other: WorkDetails) -> Bool {
        if let degree, let theirs = other.degree, degree != theirs { return true }
        if let mine = translator, let theirs = other.translator {
            let (mine, theirs) = (WorkText.people(mine).people, WorkText.people(theirs).people)
            if WorkIdentity.areStrangers(mine, theirs) { return true }
        }
        for (mine, theirs) in [(origdate, other.origdate), (eventdate, other.eventdate)] {
            if let mine = year(mine), let theirs = year(theirs), mine != theirs { return true }
        }
        if WorkPlace.areOtherDates(dates(eventdate), dates(other.eventdate)) { return true }
        let (numbers, theirs) = (numbers(series), numbers(other.series))
        if !numbers.isEmpty, !theirs.isEmpty, numbers != theirs { return true }
        if let address, let theirs = other.address, address != theirs { return true }
        if WorkPlace.areOtherTexts(section, other.section) { return true }
        return zip(names, other.names).contains { WorkPlace.areOtherTexts($0, $1) }
    }

    /// What the entry says of all this, part by part; empty where it says nothing.
    var texts: [String] {
        let said: [(String, String?)] = [
            ("degree", degree), ("translator", translator), ("origdate", year(origdate)),
            ("eventdate", WorkPlace.date(dates(eventdate))), ("series", numbers(series).joined(separator: " ")),
            ("address", address), ("section", section),
        ]
        let places = names.enumerated().map { place, text in ("name \(place)", text) }
        return (said + places).compactMap { name, value in
            // The case of an address counts.
            value.map { name == "address" ? $0 : WorkText.folded($0) }.flatMap { $0.isEmpty ? nil : "\(name) \($0)" }
        }
    }

    /// What a journal calls its parts, but for their numbers: "A", "new series".
    private var section: String? { type == "article" && numbers(series).isEmpty ? series : nil }

    /// Whether a thesis is a doctoral, a master's or a bachelor's one: one person may give two of them one title.
    private var degree: String? {
        let word = WorkText.folded(typeText ?? "")
        func says(_ words: [String]) -> Bool { words.contains(where: word.contains) }
        switch type {
        case "phdthesis", "mastersthesis", "thesis":
            if says(["habilitation"]) { return "habilitation" }
            if says(["phd", "doctor", "dissertation", "dphil"]) { return "doctor" }
            if says(["master", "mathesis", "msc", "diplom"]) { return "master" }
            if says(["bachelor", "bathesis", "bsc"]) { return "bachelor" }
            return type == "phdthesis" ? "doctor" : type == "mastersthesis" ? "master" : nil
        default: return nil
        }
    }

    /// The address of a web page, without what differs between two spellings of it.
    private var address: String? {
        guard let url, ["misc", "online", "electronic", "www"].contains(type) else { return nil }
        var rest = url[...]
        for start in ["https://", "http://", "www."] where rest.prefix(start.count).lowercased() == start {
            rest = rest.dropFirst(start.count)
        }
        while rest.last == "/" { rest = rest.dropLast() }
        // The case of what stands behind the host counts: "youtu.be/dQw4".
        let host = rest.prefix { $0 != "/" }
        return rest.isEmpty ? nil : host.lowercased() + rest.dropFirst(host.count)
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
