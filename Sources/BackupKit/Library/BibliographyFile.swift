/// A `.bib` file, opened in the encoding that it is in: UTF-8, UTF-16 with a mark, or what it declares. Everything else is
/// read as bytes, which entries keep and show as Windows-1252.
struct BibliographyFile {
    let text: FileHandle
    /// Where the file declares an encoding that it cannot be read in.
    var finding: Finding?

    static func open(_ path: String) throws -> BibliographyFile {
        let file = try FileHandle.openText(path)
        guard let name = try BibEncoding.declared(in: file.head(BibEncoding.headBytes)),
            !CharacterDecoder.isUsual(name), try !isUTF8(file)
        else { return BibliographyFile(text: file) }
        let decoder = CharacterDecoder(of: name)
        if let decoder, let copy = try file.copy(decodedBy: decoder) { return BibliographyFile(text: copy) }
        let why = decoder == nil ? ", which is unknown" : ", and has bytes that do not fit it"
        let finding = Finding(
            .malformed, .warning, path,
            "declares the encoding '\(printable(name))'\(why); it was read as UTF-8 and Windows-1252",
            remedy: "save it as UTF-8 and import it again")
        return BibliographyFile(text: file, finding: finding)
    }

    private static func isUTF8(_ file: FileHandle) throws -> Bool {
        var check = UTF8Check()
        try file.forEachChunk { check.take($0) }
        check.finish()
        return check.isUTF8
    }
}
