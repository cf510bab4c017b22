/// A `.bib` file, opened in the encoding that it is in: UTF-8, UTF-16 with a mark, or what it declares. Everything else is
/// read as bytes, which entries keep and show as Windows-1252.
struct BibliographyFile {
    let text: FileHandle
    /// Where the file declares an encoding that it cannot be read in.
    var finding: Finding?

    static func open(_ path: String, _ origin: FileOrigin = .place) throws -> BibliographyFile {
        let file = try FileHandle.openText(path)
        guard let name = try BibEncoding.declared(in: file.head(BibEncoding.headBytes)),
            case let iconvName = BibEncoding.iconvName(name), !CharacterDecoder.isUsual(iconvName ?? name),
            try !isUTF8(file)
        else { return BibliographyFile(text: file) }
        let decoder = CharacterDecoder(of: iconvName ?? name)
        if let decoder, let copy = try file.copy(decodedBy: decoder) { return BibliographyFile(text: copy) }
        let doesNotFit = decoder != nil
        let why = doesNotFit ? ", and has bytes that do not fit it" : ", which is not read"
        // A file out of a backup was unpacked, and its path is gone afterwards.
        let isAtItsPlace = if case .place = origin { true } else { false }
        let place = isAtItsPlace ? path : lastComponent(of: path)
        // With --mirror, what the store has of the file by now goes.
        let next = isAtItsPlace ? "import it again with --mirror" : "restore the backup into a new store"
        let finding = Finding(
            .malformed, .warning, place,
            "declares the encoding '\(printable(name))'\(why); it was read as UTF-8 and Windows-1252",
            remedy: doesNotFit
                ? "save it as UTF-8 and import it again" : "\(conversion(of: place, from: iconvName)), and \(next)")
        return BibliographyFile(text: file, finding: finding)
    }

    private static func conversion(of path: String, from name: String?) -> String {
        let listing = name == nil ? " ('iconv -l' lists the encodings)" : ""
        let command = "iconv -f \(name ?? "ENCODING") -t UTF-8 \(TypedCommand.word(path))"
        return "save what '\(command)' prints\(listing) in its place"
    }

    private static func isUTF8(_ file: FileHandle) throws -> Bool {
        var check = UTF8Check()
        try file.forEachChunk { check.take($0) }
        check.finish()
        return check.isUTF8
    }
}
