import TestSupport
import Testing

/// The map of `docs/design.md`, and the rules of style that a machine can check. A rule's reason is in its message.
///
/// Every folder below `Sources/BackupKit`, and the folders whose types it may name.
private let layers: [(folder: String, knows: Set<String>)] = [
    ("Domain", []),
    ("System", ["Domain"]),
    ("Formats", ["Domain", "System"]),
    ("Store", ["Domain", "System"]),
    ("Vault", ["Domain", "System"]),
    ("Carriers", ["Domain", "System", "Vault"]),
    ("Library", ["Domain", "System", "Formats", "Store", "Vault", "Carriers"]),
    ("Recovery", ["Domain", "System", "Formats", "Store", "Vault", "Carriers", "Library"]),
    ("Schedule", ["Domain", "System", "Formats", "Store", "Vault", "Carriers", "Library", "Recovery"]),
]

/// The one place where each C library is spoken to.
private let owners: [String: String] = [
    "CSQLite": "Sources/BackupKit/System/SQLite.swift",
    "CCrypto": "Sources/BackupKit/System/Crypto/",
    "CZstd": "Sources/BackupKit/System/Zstandard.swift",
    "CZlib": "Sources/BackupKit/System/Zlib.swift",
    "CLzma": "Sources/BackupKit/System/LZMA.swift",
    "CArchive": "Sources/BackupKit/System/LibArchive.swift",
    "CCurl": "Sources/BackupKit/System/HTTPRequest.swift",
    "CSystem": "Sources/BackupKit/System/",
]

private let longestFile = 400
private let longestFunction = 80

// MARK: - The rules

@Test func everyFolderOfBackupKitIsOnTheMap() throws {
    let known = Set(layers.map(\.folder))
    let strangers = Set(try Source.all.compactMap(\.layer)).subtracting(known)
    #expect(strangers.isEmpty, "say in the map (here and in docs/design.md) what \(strangers.sorted()) may know")
}

@Test func aLayerNamesOnlyTypesOfTheLayersItKnows() throws {
    expectNone(layerBreaches(try Source.all))
}

@Test func roomsFormATree() throws {
    expectNone(Dictionary(grouping: try Source.all, by: \.layer).values.flatMap(roomCircles))
}

@Test func modulesAreImportedOnlyWhereTheyBelong() throws {
    expectNone(try Source.all.flatMap(importBreaches))
}

@Test func bytesFromOutsideCannotTrap() throws {
    expectNone(try Source.all.flatMap(trapBreaches))
}

@Test func onlyAtomicFileRenames() throws {
    expectNone(try Source.all.flatMap(renameBreaches))
}

@Test func filesAndFunctionsStaySmall() throws {
    expectNone(try Source.all.flatMap(sizeBreaches))
}

private func expectNone(_ breaches: [String], at location: SourceLocation = #_sourceLocation) {
    let isClean = breaches.isEmpty
    #expect(isClean, "\n\(breaches.joined(separator: "\n"))", sourceLocation: location)
}

private func layerBreaches(_ sources: [Source]) -> [String] {
    var homes: [String: Set<String>] = [:]
    var declaredAnywhere: [String: Set<String>] = [:]
    for source in sources {
        guard let layer = source.layer else { continue }
        for type in source.code.declaredTypes() {
            declaredAnywhere[type.name, default: []].insert(layer)
            if type.isShared { homes[type.name, default: []].insert(layer) }
        }
    }
    var breaches: [String] = []
    for source in sources {
        guard let layer = source.layer, let knows = layers.first(where: { $0.folder == layer })?.knows else { continue }
        let allowed = knows.union([layer])
        var reported: Set<String> = []
        for word in source.code.words where !word.followsDot && !reported.contains(word.text) {
            // A name that also means something in a layer that may be known is given the benefit of the doubt.
            guard let owners = homes[word.text], owners.isDisjoint(with: allowed),
                declaredAnywhere[word.text]?.isDisjoint(with: allowed) != false
            else { continue }
            reported.insert(word.text)
            breaches.append(
                "\(source.path):\(word.line): \(layer) must not know \(word.text) of "
                    + "\(owners.sorted().joined(separator: ", ")): it may only know what stands above it in the map")
        }
    }
    return breaches
}

/// Where rooms of one layer name each other's types in a circle. A room is a folder of files: whoever reads one has to know those that it
/// names, and no others.
private func roomCircles(_ sources: [Source]) -> [String] {
    var homes: [String: Set<String>] = [:]
    var declared: [String: Set<String>] = [:]
    for source in sources {
        for type in source.code.declaredTypes() {
            declared[source.room, default: []].insert(type.name)
            if type.isShared { homes[type.name, default: []].insert(source.room) }
        }
    }
    var names: [String: [String: String]] = [:]
    for source in sources {
        for word in source.code.words where !word.followsDot {
            guard let home = homes[word.text], home.count == 1, let other = home.first, other != source.room,
                declared[source.room]?.contains(word.text) != true
            else { continue }
            if names[source.room]?[other] != nil { continue }
            names[source.room, default: [:]][other] = "\(source.path):\(word.line): names \(word.text) of \(other)"
        }
    }
    // What leads to no room that is left is in no circle, and neither is what no room that is left leads to.
    while true {
        let reached = Set(names.values.flatMap(\.keys))
        let left = names.filter { reached.contains($0.key) }
            .mapValues { $0.filter { names[$0.key] != nil } }.filter { !$0.value.isEmpty }
        if left == names { break }
        names = left
    }
    return names.values.flatMap(\.values).sorted().map { "\($0), which leads back: rooms must form a tree" }
}

private func importBreaches(_ source: Source) -> [String] {
    source.code.imports().compactMap { found in
        let reason: String?
        if found.text.hasPrefix("Foundation") {
            reason = "it costs milliseconds at every start, and Glibc will do"
        } else if let owner = owners[found.text] {
            reason = source.path.hasPrefix(owner) ? nil : "all pointers of that library stay in \(owner)"
        } else if source.layer == "Domain" {
            reason = "Domain is values and rules, and needs nothing but the standard library"
        } else if source.layer == "Formats" && found.text != "Synchronization" {
            reason = "Formats turns bytes into values and back, and does no input or output"
        } else {
            reason = nil
        }
        return reason.map { "\(source.path):\(found.line): must not import \(found.text): \($0)" }
    }
}

private func trapBreaches(_ source: Source) -> [String] {
    let reason = "a damaged file must become an error or a finding, never the end of the process"
    let calls = source.code.words.filter { $0.text == "fatalError" && $0.next == "(" }
    return (calls.map { ($0.line, "fatalError(") } + source.code.forcedUnwraps().map { ($0, "a forced '!'") })
        .map { "\(source.path):\($0.0): must not use \($0.1): \(reason)" }
}

private func renameBreaches(_ source: Source) -> [String] {
    guard source.path != "Sources/BackupKit/System/Files/AtomicFile.swift" else { return [] }
    let names = ["rename", "renameat", "renameat2", "csystem_rename_new", "csystem_rename_exchange"]
    return source.code.words.filter { names.contains($0.text) && $0.next == "(" && !$0.followsDot }.map {
        "\(source.path):\($0.line): must not call \($0.text): only AtomicFile knows the order that survives a crash"
    }
}

private func sizeBreaches(_ source: Source) -> [String] {
    var breaches: [String] = []
    if source.code.lineCount > longestFile {
        breaches.append(
            "\(source.path): has \(source.code.lineCount) lines; more than \(longestFile) are two files in one")
    }
    for function in source.code.functions() where function.lines > longestFunction {
        breaches.append(
            "\(source.path):\(function.line): \(function.name) has \(function.lines) lines; "
                + "more than \(longestFunction) do several things")
    }
    return breaches
}

// MARK: - The sources

private struct Source {
    let path: String
    let code: SwiftCode

    /// The folder below `Sources/BackupKit`; nil for other targets.
    var layer: String? {
        let parts = path.split(separator: "/")
        return parts.count > 3 && parts[1] == "BackupKit" ? String(parts[2]) : nil
    }

    /// The folder that it lies in, below `Sources`.
    var room: String { path.split(separator: "/").dropFirst().dropLast().joined(separator: "/") }

    static var all: [Source] { get throws { try cache.get() } }

    private static let cache = Result {
        let found = try runProcess(["find", "Sources", "-name", "*.swift"], in: projectFolder).stdoutLines.sorted()
        try #require(found.count > 20, "the sources are not where they are looked for: \(projectFolder)")
        return try found.map { path in
            Source(path: path, code: SwiftCode(try #require(readText("\(projectFolder)/\(path)"))))
        }
    }
}

// MARK: - Proof that the rules see what they look for

@Test(arguments: [
    "let a = b!", "f()!.g", "a[0]! + 1", "x as! Int", "try! f()", "var a: Int!", "\"\\(a!)\"", "fatalError(\"no\")",
])
func trapsAreSeen(_ code: String) {
    #expect(trapBreaches(Source(path: "a.swift", code: SwiftCode(code))).count == 1)
}

@Test(arguments: [
    "a != b", "if !a {}", "(!a, !b)", "// b!", "\"no!\"", "#\"a\"!\"#", "/* try! /* x! */ y! */ a",
    "\"\"\"\n b! \"x\" c!\n\"\"\"",
    "\"\\(f(\"b!\"))!\"", "a as? Int", "fatalErrors(1)", "let fatalError = 1",
])
func whatIsNoTrapIsNotSeenAsOne(_ code: String) {
    #expect(trapBreaches(Source(path: "a.swift", code: SwiftCode(code))).isEmpty)
}

@Test func breachesOfTheMapAreSeen() {
    let store = Source(
        path: "Sources/BackupKit/Store/S.swift", code: SwiftCode("public struct Chest { enum Inner {} }"))
    func breaches(_ folder: String, _ code: String) -> Int {
        layerBreaches([store, Source(path: "Sources/BackupKit/\(folder)/F.swift", code: SwiftCode(code))]).count
    }
    #expect(breaches("Formats", "func f(_ chest: Chest) {}") == 1)
    #expect(breaches("Formats", "// Chest\nlet a = \"Chest\", b = x.Chest, c = Chests()") == 0)
    #expect(breaches("Formats", "struct Inner {}; let a = Inner()") == 0)
    #expect(breaches("Library", "func f(_ chest: Chest) {}") == 0)
    let bad = Source(path: "Sources/BackupKit/Formats/F.swift", code: SwiftCode("import Glibc\nimport CZstd\n"))
    #expect(importBreaches(bad).count == 2)
    #expect(renameBreaches(Source(path: "a", code: SwiftCode("rename(a, b); x.rename(a)"))).count == 1)
}

@Test func circlesOfRoomsAreSeen() {
    func source(_ place: String, _ code: String) -> Source {
        Source(path: "Sources/BackupKit/\(place).swift", code: SwiftCode(code))
    }
    let house = [
        source("A/Attic/A", "struct Attic { let hall: Hall }"),
        source("A/Hall/H", "struct Hall { let cellar: Cellar }"),
        source("A/Cellar/C", "struct Cellar {}"),
    ]
    #expect(roomCircles(house).isEmpty)
    let circle = roomCircles(house + [source("A/Cellar/D", "struct Stairs {\n    let up: Hall\n}")])
    #expect(circle.count == 2 && circle[0].contains("Cellar/D.swift:2: names Hall of BackupKit/A/Hall"), "\(circle)")
}

@Test func linesAreCountedThroughTextAndComments() {
    let code = SwiftCode("/* a\n*/ let b = \"\"\"\n  \\(c)\n  d \\\n  e\n  \"\"\" // f\nlet g = 1\n")
    #expect(code.words.first { $0.text == "g" }?.line == 7)
    #expect(code.words.map(\.text) == ["let", "b", "c", "let", "g", "1"])
}

@Test func longFunctionsAreSeen() {
    let body = String(repeating: "    a()\n", count: longestFunction)
    let code = "protocol P {\n    func f()\n    func g<T: Q>(_ a: (Int) -> Void) throws\n}\nfunc long() {\n\(body)}\n"
    #expect(sizeBreaches(Source(path: "a", code: SwiftCode(code))).count == 1)
    #expect(SwiftCode(code).functions().map(\.lines) == [longestFunction + 2])
}
