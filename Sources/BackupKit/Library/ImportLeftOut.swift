/// What an import leaves out, and says so.
extension Importer {
    /// Parts files that can be read from those that cannot.
    static func readable(_ sources: [Source]) throws -> (sources: [Source], refused: [(path: String, why: String)]) {
        var refused: [(path: String, why: String)] = []
        let sources = try sources.filter { source in
            guard let path = source.textFile else { return true }
            var why = try FileHandle.refusal(ofText: path)
            if case .bibliography = source, why == nil { why = try ForeignText.refusal(ofBibliography: path) }
            if let why { refused.append((path, why)) }
            return why == nil
        }
        return (sources, refused)
    }

    /// `named` are the paths that the user gave; in a folder, what --only does not name is not asked for.
    static func noteUnwanted(_ sources: [Source], named: Set<String>, _ intake: Intake, _ kinds: Set<Kind>) {
        for source in sources {
            guard let path = source.textFile, let kind = source.kind, !kinds.contains(kind) else { continue }
            let isNamed = named.contains(path)
            let isSettings = kind == .settings
            guard isNamed || isSettings else { continue }
            intake.note(
                Finding(
                    isNamed ? .skipped : .notAskedFor, isNamed ? .warning : .note, path,
                    isSettings
                        ? "was left out: settings are only imported when asked for"
                        : "was left out: --only does not name \(kind.rawValue)",
                    remedy: "name the kind: --only \(kind.rawValue)"))
        }
    }

    /// `taken` are files that were taken because lines or entries name them.
    static func noteLeftOut(_ sources: [Source], taken: Set<String>, _ intake: Intake) {
        for case .leftOut(let path, let files) in sources {
            let left = files.filter { !taken.contains("\(path)/\($0)") }
            guard let first = left.first else { continue }
            let count = left.count
            intake.note(
                Finding(
                    .skipped, .warning, path,
                    "holds \(count) \(count == 1 ? "file" : "files") that import does not take, such as \(first)",
                    remedy: "--attachments DIR takes files of any kind"))
        }
    }
}

extension Importer.Source {
    fileprivate var textFile: String? {
        switch self {
        case .bibliography(let path), .events(let path), .notes(let path), .settings(let path), .records(let path):
            path
        case .leftOut, .backup: nil
        }
    }

    fileprivate var kind: Kind? {
        switch self {
        case .bibliography: .publications
        case .events: .events
        case .notes: .notes
        case .settings: .settings
        case .records, .leftOut, .backup: nil
        }
    }
}
