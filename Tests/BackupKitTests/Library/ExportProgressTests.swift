import Synchronization
import TestSupport
import Testing

@testable import BackupKit

/// How far an export says that it is.
@Test func anExport_isNotAtItsEndBeforeItsAttachments() throws {
    try withTemporaryFolder { folder in
        let store = try Store.create("\(folder)/s.db")
        for number in 0..<200 { try store.take(record("e\(number)", #"{"n":\#(number)}"#)) }
        _ = try store.batch(kind: "import", source: "test") { () -> (Void, summary: String) in
            try place("Attachments/a.pdf", "%PDF", in: store)
            return ((), summary: "")
        }
        let events = Mutex<[ProgressEvent]>([])
        var options = ExportOptions(form: .layout(.directory))
        options.progress = Progress { event in events.withLock { $0.append(event) } }
        _ = try Exporter.export(store, to: "\(folder)/e", options)
        let exported = events.withLock { $0.filter { $0.phase == "exporting" } }
        let first = try #require(exported.firstIndex { $0.item == "Attachments/a.pdf" })
        for event in exported[..<first] { #expect(event.done < event.total ?? 0, "\(event)") }
        #expect(exported[first].done <= exported[first].total ?? 0, "\(exported[first])")
    }
}
