/// The files that entries of `.bib` files name and that lie beside them, as Zotero, JabRef and BibDesk export them.
///
/// A path that leads out of the folder of its `.bib` file is not followed, unless it lies in a folder that somebody named;
/// and no link on the disk is. An absolute path into one of these folders is.
final class NamedFiles {
    private struct Wish {
        let key: String
        let bibliography: String
        let link: BibFileLink
        let isMark: Bool
        /// Where the file lies in the store, once it is there.
        var place: String?
    }

    private struct Found {
        let bibliography: String
        /// The file, and the path that it gets below the folder of attachments.
        let file: String
        let relative: String
        var wishes: [Int]
    }

    private let hasher: RecordHasher
    private let roots: [String]
    /// What is taken whole, by itself.
    private let attachments: String?
    private var wishes: [Wish] = []
    /// Which wishes an entry has, by a hash of its text.
    private var wishesByText: [UInt64: [Int]] = [:]
    private var files: [Found] = []
    private var placeOfFile: [ByteName: Int] = [:]
    private var folders: [ByteName: RootDirectory?] = [:]
    /// Folders that a `.bib` file's JabRef settings name, relative to it.
    private var jabRefFolders: [ByteName: [String]] = [:]
    /// The files that were found, for who counts what is left.
    private(set) var taken: Set<ByteName> = []

    /// `paths` are those that somebody named, `attachments` the folder of `--attachments`.
    init(_ store: Store, paths: [String], attachments: String?) throws {
        hasher = store.hasher
        self.attachments = attachments.flatMap(Directory.real)
        roots = try (paths + [attachments].compactMap(\.self)).filter {
            try FileStatus.ofTarget($0)?.isDirectory == true
        }
    }

    /// Takes note of what an entry names, and the comments of ours before it. Returns the numbers of its wishes.
    @discardableResult
    func note(
        _ block: BibBlock, in bibliography: String, _ macros: BibMacros, alsoNaming paths: [String]
    ) -> Range<Int> {
        let start = wishes.count
        var links = BibFileLinks.links(in: block, macros: macros)
        let named = links.count
        links += paths.filter { path in !links.contains { $0.readings.contains { sameBytes($0, path) } } }.map {
            BibFileLink(path: $0)
        }
        let key = block.key
        for (number, link) in links.enumerated() {
            wishes.append(Wish(key: key, bibliography: bibliography, link: link, isMark: number >= named))
        }
        know(block, by: start..<wishes.count)
        return start..<wishes.count
    }

    /// The store may know the entry by this text, too.
    func know(_ block: BibBlock, by wishes: Range<Int>) {
        if !wishes.isEmpty { wishesByText[hasher.text(block.raw), default: []] += wishes }
    }

    /// Whether there is such a file beside a bibliography.
    func isBeside(_ bibliography: String, _ relative: String) -> Bool {
        guard (try? EntryName.check(relative)) != nil,
            let status = try? FileStatus.ofName("\(parent(of: bibliography))/\(relative)")
        else { return false }
        return status.isRegular
    }

    /// `@comment{jabref-meta: fileDirectory:papers;}`
    func noteComment(_ raw: UnsafeRawBufferPointer, in bibliography: String) {
        guard let slot = BibliographyPart.slot(of: raw, kind: BibBlock.Kind.comment.rawValue)?.lowercased(),
            slot.hasPrefix("jabref-meta: filedirectory")
        else { return }
        let text = BibText.decode(Array(raw)).text
        guard let start = text.firstIndex(of: ":").flatMap({ text[text.index(after: $0)...].firstIndex(of: ":") }),
            let end = text[start...].firstIndex(where: { $0 == ";" || $0 == "}" })
        else { return }
        let folder = text[text.index(after: start)..<end].filter { $0 != "\\" }
        jabRefFolders[ByteName(bibliography), default: []].append(folder)
    }

    // MARK: Finding them

    /// Copies what is there into `folder`, and takes it into the store, inside the batch and after the entries.
    func take(into intake: Intake, in folder: String, dryRun: Bool) throws {
        for index in wishes.indices { try find(index) }
        for (number, bibliography) in Set(files.map { ByteName($0.bibliography) }).map(\.text)
            .sorted(by: precedesBytewise).enumerated()
        {
            // Two files of one name beside two bibliographies must not meet before the store parts them.
            let inner = "\(folder)/named-\(number)"
            try Directory.create(inner)
            var staged = try AttachmentFolder(inner)
            let mine = files.filter { sameBytes($0.bibliography, bibliography) }
            for file in mine { try staged.add(file.file, as: file.relative, for: intake.store, dryRun: dryRun) }
            for (file, place) in zip(mine, try staged.places(into: intake)) {
                for wish in file.wishes { wishes[wish].place = place }
            }
        }
        try link(intake)
    }

    private func find(_ index: Int) throws {
        let wish = wishes[index]
        let beside = parent(of: wish.bibliography)
        for reading in wish.link.readings {
            if reading.hasPrefix("/") {
                for root in roots + [beside] {
                    for spelled in spellings(of: root) where reading.hasPrefix(spelled + "/") {
                        let relative = String(reading.dropFirst(spelled.count + 1))
                        if try take(relative, below: root, index) { return }
                    }
                }
                continue
            }
            for inner in [""] + (jabRefFolders[ByteName(wish.bibliography)] ?? []).map({ $0 + "/" }) {
                if try take(inner + reading, below: beside, index) { return }
            }
        }
    }

    private func spellings(of folder: String) -> [String] { [folder, Directory.real(folder)].compactMap(\.self) }

    private func take(_ written: String, below root: String, _ wish: Int) throws -> Bool {
        guard let relative = FilePath.below(written) else { return false }
        let path = "\(root)/\(relative)"
        if let known = placeOfFile[ByteName(path)],
            sameBytes(files[known].bibliography, wishes[wish].bibliography)
        {
            files[known].wishes.append(wish)
            return true
        }
        guard (try? EntryName.check(relative)) != nil else { return false }
        if folders[ByteName(root)] == nil { folders[ByteName(root)] = try RootDirectory.ifThere(root) }
        guard let folder = folders[ByteName(root)] ?? nil, let file = try? folder.openForReading(relative),
            try file.status().isRegular
        else { return false }
        // What lies in the folder of attachments is taken there, and found by its name.
        if let attachments, let real = Directory.real(path), real.hasPrefix(attachments + "/") { return true }
        placeOfFile[ByteName(path)] = files.count
        files.append(Found(bibliography: wishes[wish].bibliography, file: path, relative: relative, wishes: [wish]))
        taken.insert(ByteName(path))
        return true
    }

    // MARK: Linking them

    /// An entry that stands in the store as it was read gets its own files; one that was merged with another is known by its
    /// key and by what it names.
    private func link(_ intake: Intake) throws {
        guard wishes.contains(where: { $0.place != nil }) else { return }
        var open = Set(wishes.indices.filter { wishes[$0].place != nil })
        var byKey: [ByteName: [(localID: String, paths: [String])]] = [:]
        var additions: [(localID: String, place: String)] = []
        let keys = Set(open.map { ByteName(wishes[$0].key) })
        try intake.store.forEachLive(type: RecordType.publication) { stored in
            let fields = try Fields.parse(stored.record.fields)
            let text = try Publication.bytes(of: fields).withUnsafeBytes { hasher.text($0) }
            for wish in wishesByText[text] ?? [] {
                guard let place = wishes[wish].place else { continue }
                additions.append((stored.record.localID, place))
                open.remove(wish)
            }
            if let key = Fields.string(Publication.citeKey, in: fields).map({ ByteName($0) }), keys.contains(key) {
                byKey[key, default: []].append((stored.record.localID, Publication.links(in: fields).map(\.path)))
            }
        }
        for wish in open.sorted() {
            guard let place = wishes[wish].place else { continue }
            // What our own comments name, the entry's text need not name.
            let candidates = byKey[ByteName(wishes[wish].key)] ?? []
            if candidates.count == 1, wishes[wish].isMark { additions.append((candidates[0].localID, place)) }
            for known in candidates where known.paths.contains(where: { sameBytes($0, wishes[wish].link.path) }) {
                additions.append((known.localID, place))
            }
        }
        for (localID, additions) in Dictionary(grouping: additions, by: \.localID).sorted(by: { $0.key < $1.key }) {
            try intake.store.addToSet(
                Publication.linkedFiles, additions.map(\.place), localID: localID, type: RecordType.publication)
        }
    }

    /// Says which files entries name that the store has not got.
    func reportMissing(to intake: Intake) throws {
        var missing = Set(wishes.indices.filter { wishes[$0].place == nil })
        if missing.isEmpty { return }
        let keys = Set(missing.map { wishes[$0].key })
        var linked: [String: Set<String>] = [:]
        try intake.store.forEachCiteKey { key, _, record in
            guard keys.contains(key), let stored = try record() else { return }
            let links = Fields.strings(Publication.linkedFiles, in: try Fields.parse(stored.record.fields))
            let paths = try links.filter { path in
                try intake.store.ifSound { try intake.store.asset(path) } ?? nil != nil
            }
            linked[key, default: []].formUnion(paths.map { lastComponent(of: $0) })
        }
        missing = missing.filter { index in
            !wishes[index].link.readings.contains { linked[wishes[index].key]?.contains(lastComponent(of: $0)) == true }
        }
        // A file that is named twice on the command line says the same twice.
        var said: Set<[ByteName]> = []
        for index in missing.sorted() {
            let wish = wishes[index]
            let (path, bibliography) = (wish.link.path, wish.bibliography)
            guard said.insert([path, bibliography, wish.key].map { ByteName($0) }).inserted else { continue }
            let folders = spellings(of: parent(of: bibliography))
            let isBelow = wish.link.readings.contains { reading in
                FilePath.below(reading) != nil || folders.contains { reading.hasPrefix($0 + "/") }
            }
            let reason = isBelow ? "but was not found" : "but only files below the folder of the .bib file are taken"
            intake.note(
                Finding(
                    .linkMissing, .warning, path, "is named in \(bibliography), \(reason)",
                    remedy: "--attachments DIR imports the files of a folder and links them by their names"))
        }
    }
}
