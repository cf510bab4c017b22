import TestSupport
import Testing

@testable import BackupKit

/// Work grows with a store, and not with its square: no statement that runs once an item looks through many rows.
@Suite struct ScanTests {
    @Test func fourTimesAsManyItems_costFourTimesAsManySteps() throws {
        let few = try steps(items: 40)
        let many = try steps(items: 160)
        for (sql, steps) in many.sorted(by: { $0.value > $1.value }) where steps > 20_000 {
            let before = few[sql, default: 0]
            #expect(steps < before * 8, "\(before) steps, then \(steps): \(sql)")
        }
    }

    /// The steps that each statement took in imports, syncs, edits, deletes, restores, checks and undos.
    private func steps(items: Int) throws -> [String: Int] {
        var steps: [String: Int] = [:]
        try withTemporaryFolder { folder in
            func open(_ name: String, _ body: (Store) throws -> Void) throws {
                clock.advance()
                let store = try Store("\(folder)/\(name).db", .write, clock: clock.clock)
                store.database.afterStatement = { steps[$0, default: 0] += $1 }
                try body(store)
            }
            let clock = TestClock()
            let hub = try FileHub.create("\(folder)/hub.db")
            hub.database.afterStatement = { steps["hub: \($0)", default: 0] += $1 }
            func sync(_ name: String) throws { try open(name) { _ = try Synchronizer($0, hub).run() } }
            try writeLibrary(items, "first", in: folder)
            for name in ["A", "B", "C"] { _ = try Store.create("\(folder)/\(name).db", clock: clock.clock) }
            try open("A") { try importLibrary(folder, into: $0) }
            try open("A") { try importLibrary(folder, into: $0) }
            try sync("A")
            try sync("B")
            try writeLibrary(items, "second", in: folder)
            try open("B") { try importLibrary(folder, into: $0) }
            try sync("B")
            try sync("A")
            // B's undo history has kept files when new ones come.
            try writeLibrary(items, "third", in: folder)
            try open("A") { try importLibrary(folder, into: $0) }
            try sync("A")
            try sync("B")
            let backup = "\(folder)/backup.tar"
            try open("A") { _ = try Exporter.export($0, to: backup, ExportOptions(form: .layout(.tar))) }
            try open("B") { store in _ = try store.delete(store.all().filter { !$0.isDeleted }.map(\.localID)) }
            try sync("B")
            try sync("A")
            try open("B") { _ = try $0.undoLast() }
            try sync("B")
            try sync("A")
            try restore(backup, .merge, "C", open)
            try restore(backup, .replace, "A", open)
            for name in ["A", "C"] { try open(name) { _ = try $0.undoLast() } }
            try open("A") { _ = try Deduplicator.run(on: $0) }
            try open("A") { _ = try $0.adopt() }
            for name in ["A", "B", "C"] {
                let findings = try StoreCheck.run("\(folder)/\(name).db").findings
                #expect(findings.allSatisfy { $0.severity == .note }, "\(findings.prefix(3))")
            }
        }
        return steps
    }

    private func restore(
        _ backup: String, _ mode: RestoreOptions.Mode, _ name: String,
        _ open: (String, (Store) throws -> Void) throws -> Void
    ) throws {
        var options = RestoreOptions()
        options.mode = mode
        options.policy = .resurrect
        try open(name) { _ = try Restorer.restore(backup, into: $0, options) }
    }

    private func importLibrary(_ folder: String, into store: Store) throws {
        var options = ImportOptions()
        options.attachments = "\(folder)/papers"
        _ = try Importer.run(["\(folder)/library.bib", "\(folder)/events.jsonl"], into: store, options)
    }

    private func writeLibrary(_ items: Int, _ word: String, in folder: String) throws {
        var entries = ""
        var events = ""
        try Directory.createAll("\(folder)/papers")
        for number in 0..<items {
            entries += "@article{k\(number), title = {The \(word) paper of \(number)}, author = {Ada N\(number)}, "
            entries += "year = 2001, note = {\(word)}}\n"
            let id = word == "first" ? "" : "\"id\": \"e\(number)\", "
            events += "{\(id)\"time\": \"2026-01-01T00:00:00Z\", \"type\": \"potty\", \"note\": \"\(number)\"}\n"
            try writeFile("\(folder)/papers/k\(number).pdf", "\(word) bytes of \(number)")
        }
        try writeFile("\(folder)/library.bib", entries)
        try writeFile("\(folder)/events.jsonl", events)
    }
}
