/// The files that entries of `.bib` files name and that lie beside them, as Zotero, JabRef and BibDesk export them.
///
/// A path that leads out of the folder of its `.bib` file is not followed, unless it lies in a folder that somebody named;
/// and no link on the disk is. An absolute path into one of these folders is.
final class NamedFiles {
    private struct Wish {
        let bibliography: String
        let link: BibFileLink
        /// Whether a comment of ours names it: then the entry's own text need not.
        let isMark: Bool
        /// The publication that the entry went into, once that is known.
        var owner: String?
        /// Where the file lies in the store, once it is there.
        var place: String?
        /// Whether it is there, and our own comments give it to other entries alone.
        var isOfOthers = false
        /// Whether the publication stays deleted: then its file is left with it, and is counted as part of it.
        var staysDeleted = false
    }

    private struct Found {
        let bibliography: String
        let root: String
        /// Its path below the root, which it also gets below the folder of attachments.
        let relative: String
        var wishes: [Int]
        var file: String { "\(root)/\(relative)" }
    }

    private let roots: [String]
    /// What is taken whole, by itself.
    private let attachments: String?
    private var wishes: [Wish] = []
    /// Fields that ought to name a file.
    private var unreadable: [Finding] = []
    private var files: [Found] = []
    private var placeOfFile: [ByteName: Int] = [:]
    private var folders: [ByteName: RootDirectory?] = [:]
    /// Folders that a `.bib` file's JabRef settings name, relative to it.
    private var jabRefFolders: [ByteName: [String]] = [:]
    /// Files in the folder of attachments that entries name by their exact paths: the wishes, by the files' paths below
    /// that folder.
    private var claims: [ByteName: [Int]] = [:]
    /// The files that were found, for who counts what is left.
    private(set) var taken: Set<ByteName> = []
    /// Files that only entries name whose publications stay deleted.
    private(set) var leftDeleted: Set<ByteName> = []
    /// The publications that the entries of this import went into, and the paths that these entries name; only where a
    /// folder of attachments is linked with them.
    private(set) var publications: AttachmentLinks.Names = [:]

    /// `paths` are those that somebody named, `attachments` the folder of `--attachments`.
    init(paths: [String], attachments: String?) throws {
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
        func isNamed(_ path: String, by link: BibFileLink) -> Bool { link.readings.contains { sameBytes($0, path) } }
        var links = BibFileLinks.links(in: block, macros: macros)
        links += paths.filter { path in !links.contains { isNamed(path, by: $0) } }.map { BibFileLink(path: $0) }
        for link in links {
            let isMark = paths.contains { isNamed($0, by: link) }
            wishes.append(Wish(bibliography: bibliography, link: link, isMark: isMark))
        }
        for (field, reason) in BibFileLinks.unreadable(in: block, macros: macros) {
            let entry = block.key.isEmpty ? bibliography : "\(block.key) in \(bibliography)"
            unreadable.append(
                Finding(
                    .linkMissing, .warning, entry, "its \(field) \(reason)",
                    remedy: "name the file in a 'file' field of the entry, and import it again"))
        }
        return start..<wishes.count
    }

    /// Takes note of the publication that an entry went into.
    func note(owner: String, of wishes: Range<Int>) {
        for wish in wishes { self.wishes[wish].owner = owner }
        guard attachments != nil else { return }
        publications[ByteName(owner), default: []].formUnion(wishes.map { ByteName(self.wishes[$0].link.path) })
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
        try markDeleted(in: intake.store)
        for index in wishes.indices { try find(index) }
        dropDeleted()
        for index in files.indices { leaveToMarked(&files[index].wishes) }
        for file in claims.keys { leaveToMarked(&claims[file, default: []]) }
        let open = try OpenLinks(
            intake.store, among: Set(files.map { ByteName(AttachmentFolder.path(of: $0.relative)) }))
        for (number, bibliography) in Set(files.map { ByteName($0.bibliography) }).map(\.text)
            .sorted(by: precedesBytewise).enumerated()
        {
            // Two files of one name beside two bibliographies must not meet before the store parts them.
            let inner = "\(folder)/named-\(number)"
            try Directory.create(inner)
            var staged = try AttachmentFolder(inner)
            let mine = files.filter { sameBytes($0.bibliography, bibliography) }
            for file in mine { try staged.add(file.relative, below: file.root, for: intake.store, dryRun: dryRun) }
            staged.linked = { number, _ in try self.linkedFiles(of: mine[number].wishes, in: intake.store) }
            let places = try staged.places(into: intake) { number, path in
                open.mean(path) { Set(mine[number].wishes.compactMap { wishes[$0].owner.map { ByteName($0) } }) }
            }
            for (file, place) in zip(mine, places) {
                for wish in file.wishes { wishes[wish].place = place }
            }
        }
        try link(intake)
    }

    /// A file that our own comments give to some entries belongs to no other one that names such a path.
    private func leaveToMarked(_ numbers: inout [Int]) {
        guard numbers.contains(where: { wishes[$0].isMark }) else { return }
        for number in numbers where !wishes[number].isMark { wishes[number].isOfOthers = true }
        numbers.removeAll { !wishes[$0].isMark }
    }

    private func markDeleted(in store: Store) throws {
        var living: [ByteName: Bool] = [:]
        for index in wishes.indices {
            guard let owner = wishes[index].owner else { continue }
            let isLiving = try living[ByteName(owner)] ?? (publication(owner, in: store) != nil)
            living[ByteName(owner)] = isLiving
            wishes[index].staysDeleted = !isLiving
        }
    }

    /// What stays deleted brings no files.
    private func dropDeleted() {
        for index in files.indices { files[index].wishes.removeAll { wishes[$0].staysDeleted } }
        files.removeAll(where: \.wishes.isEmpty)
        let living = Set(files.map { ByteName($0.file) })
        (leftDeleted, taken) = (taken.subtracting(living), living)
        for file in claims.keys { claims[file]?.removeAll { wishes[$0].staysDeleted } }
        claims = claims.filter { !$0.value.isEmpty }
    }

    private func find(_ index: Int) throws {
        let wish = wishes[index]
        let beside = parent(of: wish.bibliography)
        for reading in wish.link.readings {
            if FilePath.isAbsolute(reading) {
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
        // What lies in the folder of attachments is taken there, and found by its name; but beside a bibliography that lies
        // deeper in it, it has the path that it has without this folder.
        if let attachments, !isDeeper(wishes[wish].bibliography, than: attachments), let real = Directory.real(path),
            real.hasPrefix(attachments + "/")
        {
            let relative = String(real.dropFirst(attachments.count + 1))
            claims[ByteName(relative), default: []].append(wish)
            return true
        }
        placeOfFile[ByteName(path)] = files.count
        files.append(Found(bibliography: wishes[wish].bibliography, root: root, relative: relative, wishes: [wish]))
        taken.insert(ByteName(path))
        return true
    }

    private func isDeeper(_ bibliography: String, than folder: String) -> Bool {
        Directory.real(parent(of: bibliography))?.hasPrefix(folder + "/") == true
    }

    // MARK: Linking them

    /// A link goes to the publication that its entry went into, as long as that still names the file.
    private func link(_ intake: Intake) throws {
        let placed = wishes.filter { $0.place != nil && $0.owner != nil }
        for (owner, wishes) in Dictionary(grouping: placed, by: { ByteName($0.owner ?? "") })
            .sorted(by: { precedesBytewise($0.key.text, $1.key.text) })
        {
            guard let record = try publication(owner.text, in: intake.store) else { continue }
            let named = try names(of: record)
            let places = wishes.filter { $0.isMark || named.contains(ByteName($0.link.path)) }.compactMap(\.place)
            try intake.link(places, to: owner.text)
        }
    }

    /// What a publication names by now: it may not name any more what its entry named.
    private func names(of record: Record) throws -> Set<ByteName> {
        Set(Publication.links(in: try Fields.parse(record.fields)).map { ByteName($0.path) })
    }

    /// Which publications name files of the folder of attachments by their exact paths, and how.
    func claims(in store: Store) throws -> AttachmentLinks.Claims {
        try claims.compactMapValues { wishes in
            let owners = try wishes.compactMap { wish -> AttachmentLinks.Claim? in
                let wish = self.wishes[wish]
                guard let owner = wish.owner, let record = try publication(owner, in: store),
                    try wish.isMark || names(of: record).contains(ByteName(wish.link.path))
                else { return nil }
                return .init(localID: owner, names: wish.link.readings)
            }
            return owners.isEmpty ? nil : owners
        }
    }

    /// The bibliographies whose entries name files of the folder of attachments while their publications keep other values, by
    /// the places of these files. Nothing is missing there.
    func overruled(_ files: [AttachmentFolder.Taken], in store: Store) throws -> [ByteName: String] {
        let places = Dictionary(grouping: files) { lastComponent(of: $0.relative) }.mapValues { $0.map(\.place) }
        var bibliographies: [ByteName: String] = [:]
        for (index, wish) in wishes.enumerated() where wish.place == nil && !wish.isMark {
            let found = wish.link.readings.lazy.compactMap { places[lastComponent(of: $0)] }.first ?? []
            guard let place = found.first, let owner = wish.owner, let record = try publication(owner, in: store),
                try !names(of: record).contains(ByteName(wish.link.path))
            else { continue }
            wishes[index].place = place
            for place in found { bibliographies[ByteName(place)] = wish.bibliography }
        }
        return bibliographies
    }

    /// What the publications link whose entries name a file of the folder of attachments by its exact path.
    func linkedFiles(ofClaims relative: String, in store: Store) throws -> [String] {
        try linkedFiles(of: claims[ByteName(relative)] ?? [], in: store)
    }

    private func linkedFiles(of wishes: [Int], in store: Store) throws -> [String] {
        try wishes.compactMap { self.wishes[$0].owner }.flatMap { owner in
            try publication(owner, in: store).map { try Store.links(of: $0) } ?? []
        }
    }

    private func publication(_ localID: String, in store: Store) throws -> Record? {
        try store.ifSound { try store.livePublication(localID) }??.record
    }

    /// Says which files entries name that their publications do not have.
    func reportMissing(to intake: Intake) throws {
        for finding in unreadable { intake.note(finding) }
        // A file that is named twice on the command line says the same twice.
        var said: Set<[ByteName]> = []
        // The fields of the last owner: an entry may name thousands of files.
        var last: (owner: String, fields: [Field]?)?
        for wish in wishes where wish.place == nil && !wish.staysDeleted {
            if let owner = wish.owner {
                if last.map({ !sameBytes($0.owner, owner) }) ?? true {
                    let record = try publication(owner, in: intake.store)
                    last = (owner, try record.map { try Fields.parse($0.fields) })
                }
                if let fields = last?.fields, try intake.store.hasFile(for: wish.link.readings, in: fields) { continue }
            }
            let (path, bibliography) = (wish.link.path, wish.bibliography)
            guard said.insert([path, bibliography, wish.owner ?? ""].map { ByteName($0) }).inserted else { continue }
            let folders = spellings(of: parent(of: bibliography))
            let isBelow = wish.link.readings.contains { reading in
                FilePath.below(reading) != nil || folders.contains { reading.hasPrefix($0 + "/") }
            }
            let obstacle = isBelow ? obstacle(to: wish) : nil
            let reason =
                wish.isOfOthers
                ? "but the file of that path belongs to another entry there"
                : isBelow
                    ? obstacle?.reason ?? "but was not found"
                    : "but only files below the folder of the .bib file are taken"
            intake.note(
                Finding(
                    .linkMissing, .warning, path, "is named in \(bibliography), \(reason)",
                    remedy: obstacle?.remedy
                        ?? "--attachments DIR imports the files of a folder and links them by their names"))
        }
    }

    /// What keeps a file from being taken that lies where its entry says.
    private func obstacle(to wish: Wish) -> (reason: String, remedy: String)? {
        for reading in wish.link.readings {
            guard let relative = FilePath.below(reading) else { continue }
            let path = "\(parent(of: wish.bibliography))/\(relative)"
            let status = try? FileStatus.ofName(path)
            if let status, !status.isRegular {
                return ("but is \(status.kindName)", "put the file itself there, and import this again")
            }
            if FileHandle.isDenied(path) { return ("but may not be read", BackupError.whoMayRead) }
            if status != nil {
                return ("but lies behind a link to a folder", "--attachments DIR takes it from the folder itself")
            }
        }
        return nil
    }
}

extension Store {
    /// Whether a publication links a file that the store has by one of these names, or as another version of it.
    func hasFile(for names: [String], in fields: [Field]) throws -> Bool {
        try links(as: names, in: fields).contains { path in try ifSound { try asset(path) } ?? nil != nil }
    }

    /// The same, also of a file that is known and on other devices only.
    func knowsFile(for names: [String], in fields: [Field]) throws -> Bool {
        try hasFile(for: names, in: fields) || links(as: names, in: fields).contains { try awaitedFile($0) != nil }
    }

    private func links(as names: [String], in fields: [Field]) -> [String] {
        func isNamedItself(_ path: String) -> Bool {
            Publication.links(in: fields).flatMap(\.readings).contains {
                lastComponent(of: $0) == lastComponent(of: path)
            }
        }
        return Fields.strings(Publication.linkedFiles, in: fields).filter { path in
            // A publication may name a file with such a number itself.
            names.contains { Self.isVersion(path, of: $0) && !(Self.isNumbered(path, of: $0) && isNamedItself(path)) }
        }
    }
}
