/// Text without an entry: comments of a person, or a bibliography in another format.
enum BibComments {
    /// Whether each line is blank or begins with a `%`, and these are no records of Refer or EndNote: `%0 Journal Article`,
    /// `%T A title`.
    static func areAll(of text: UnsafeRawBufferPointer) -> Bool {
        var tags: Set<UInt8> = []
        for line in text.split(whereSeparator: BibByte.isBreak) {
            let words = line.drop(while: BibByte.isBlank)
            guard let first = words.first else { continue }
            guard first == BibByte.percent else { return false }
            let tag = words.dropFirst().prefix(2)
            guard let letter = tag.first, letter > 0x20, tag.count < 2 || tag.last == 0x20 else { continue }
            tags.insert(letter)
        }
        return tags.count < 2 || tags.isDisjoint(with: [UInt8(ascii: "0"), UInt8(ascii: "T"), UInt8(ascii: "A")])
    }
}
