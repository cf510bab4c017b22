/// Whether an entry that came into a file is one that went from it, edited. A person corrects one thing at a time; a key that
/// was used again for another work brings another title with other people, or another place with another year.
extension WorkIdentity {
    /// Whether `next`, which came where this one went, is the same entry with a correction. Both have one cite key, or none.
    func isCorrected(to next: WorkIdentity) -> Bool {
        if verdict(next) == .same { return true }
        guard key == next.key, let title, let nextTitle = next.title else { return false }
        let hasOtherPeople = people.flatMap { mine in next.people.map { !Self.areSame(mine, $0) } } ?? false
        let hasOtherYear = year.flatMap { mine in next.year.map { mine != $0 } } ?? false
        let shared = sharesIdentifier(with: next)
        if title == nextTitle, shared != true {
            let differences = [hasOtherPeople, hasOtherYear, shared == false, isElsewhere(than: next)]
            return differences.count(where: \.self) <= 1
        }
        guard people != nil, next.people != nil, !hasOtherPeople, !hasOtherYear, shared != false else { return false }
        // A correction of the page is one more, unless an identifier says that it is the same work.
        guard shared == true || !isElsewhere(than: next) else { return false }
        return Self.areNear(titleText, next.titleText)
    }

    /// Whether an entry under another key may be this one with more than its key corrected. Nobody can tell, so it is only named.
    func mayBeCorrected(to next: WorkIdentity) -> Bool {
        let shared = sharesIdentifier(with: next)
        if shared == true { return true }
        let haveSamePeople = people.flatMap { mine in next.people.map { Self.areSame(mine, $0) } }
        let haveSameYear = year.flatMap { mine in next.year.map { mine == $0 } }
        if let title, title == next.title { return haveSamePeople != false || haveSameYear != false }
        guard haveSamePeople == true else { return false }
        return haveSameYear == true && shared != false || Self.areNear(titleText, next.titleText)
    }

    /// Whether an entry of the same key, in the same file as before, is this one with other words. The old words may still
    /// be in the file, so only an equal title or a strong identifier tells.
    func isEdited(to next: WorkIdentity) -> Bool {
        verdict(next, isRelated: true) == .same || sharesIdentifier(with: next) == true && isCorrected(to: next)
    }

    /// Under what to look for entries that may be this one: two that are the same work have one of these in common.
    var marks: [String] {
        let strong = WorkIdentifier.Kind.allCases.flatMap { kind in identifiers(kind).map { "\(kind.rawValue):\($0)" } }
        let title = title.map { ["title:\($0)"] } ?? []
        let all = strong + title
        return all.isEmpty ? ["text:\(text)"] : all
    }

    /// Whether both have an identifier of one kind, and it is the same; nil where they have none in common.
    func sharesIdentifier(with other: WorkIdentity) -> Bool? {
        var shares: Bool?
        for kind in WorkIdentifier.Kind.allCases {
            let (mine, theirs) = (identifiers(kind), other.identifiers(kind))
            if mine.isEmpty || theirs.isEmpty { continue }
            if mine.isDisjoint(with: theirs) { return false }
            shares = true
        }
        return shares
    }

    /// Whether one title is the other one with words added or a word corrected. Numbers tell parts of one work from each other.
    private static func areNear(_ one: String, _ other: String) -> Bool {
        let (mine, theirs) = (words(one), words(other))
        guard mine.filter(isNumber) == theirs.filter(isNumber) else { return false }
        let (short, long) = mine.count <= theirs.count ? (mine, theirs) : (theirs, mine)
        var rest = long[...]
        let areAdded = short.allSatisfy { word in
            guard let place = rest.firstIndex(of: word) else { return false }
            rest = rest[(place + 1)...]
            return true
        }
        if areAdded, short.count * 2 >= long.count { return true }
        let (left, right) = (Array(mine.joined(separator: " ").utf8), Array(theirs.joined(separator: " ").utf8))
        return distance(left, right) * 5 <= max(left.count, right.count)
    }

    static func words(_ title: String) -> [String] {
        title.split { $0 == " " || $0 == "-" || $0 == "\n" || $0 == "\t" || $0 == "~" || $0 == "/" }
            .map { WorkText.folded($0) }.filter { !$0.isEmpty }
    }

    /// 2, W3, IV; and a letter, as in "Part B".
    static func isNumber(_ word: String) -> Bool {
        word.utf8.contains { 0x30...0x39 ~= $0 } || word.utf8.allSatisfy { "ivx".utf8.contains($0) }
            || word.utf8.count == 1 && word != "a"
    }

    /// How many bytes have to be changed, added or left out.
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        let longest = 400
        guard left.count <= longest, right.count <= longest else { return left == right ? 0 : longest }
        var row = Array(0...right.count)
        for (place, byte) in left.enumerated() {
            var diagonal = row[0]
            row[0] = place + 1
            for (column, other) in right.enumerated() {
                let changed = diagonal + (byte == other ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(changed, row[column] + 1, diagonal + 1)
            }
        }
        return row[right.count]
    }
}
