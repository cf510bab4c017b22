import BackupKit
import TestSupport
import Testing

extension Store {
    fileprivate func names(since token: ChangeToken?, limit: Int = .max) throws -> ([String], ChangeToken, more: Bool) {
        var names: [String] = []
        let (next, more) = try changes(since: token, limit: limit) { change in
            switch change {
            case .changed(let record): names.append((record.isDeleted ? "-" : "+") + record.id.name)
            case .removed(let id, _): names.append("x" + id.name)
            }
        }
        return (names, next, more)
    }
}

@Suite struct ChangesTests {
    @Test func aTokenGivesWhatChangedSinceOldestFirst() throws {
        try withStore { test in
            try test.store.take(record("a"), record("b"))
            let (first, token, _) = try test.store.names(since: nil)
            #expect(first == ["+a", "+b"])
            _ = try test.store.delete(["a"])
            try test.store.take(record("c"))
            #expect(try test.store.names(since: token).0 == ["-a", "+c"])
            #expect(try test.store.names(since: test.store.token()).0.isEmpty)
        }
    }

    @Test func pagesLeaveNothingOutAndRepeatNothing() throws {
        try withStore { test in
            for number in 0..<25 { try test.store.take(record("r\(number)")) }
            var token: ChangeToken?
            var seen: [String] = []
            var more = true
            while more {
                let page = try test.store.names(since: token, limit: 7)
                #expect(page.0.count <= 7)
                seen += page.0
                (token, more) = (page.1, page.more)
            }
            #expect(seen == (0..<25).map { "+r\($0)" })
        }
    }

    @Test func anUndoTellsWhatItTookOut() throws {
        try withStore { test in
            let start = try test.store.token()
            _ = try test.store.batch(kind: "import", source: "x") {
                (try test.store.ingest(record("a")), summary: "")
            }
            let middle = try test.store.token()
            _ = try test.store.undoLast()
            #expect(try test.store.names(since: middle).0 == ["xa"])
            #expect(try test.store.names(since: start).0 == ["xa"])
            try test.store.take(record("a"))
            #expect(try test.store.names(since: middle).0 == ["xa", "+a"])
        }
    }

    @Test func tokensOfOtherStoresAndOtherTimesAreRefused() throws {
        try withStore { test in
            let token = try test.store.token()
            let foreign = ChangeToken(storeID: "0123", change: 0)
            let future = ChangeToken(storeID: token.storeID, change: token.change + 1)
            for wrong in [foreign, future] {
                let error = #expect(throws: BackupError.self) { try test.store.changes(since: wrong) { _ in } }
                #expect(error?.code == .refused)
            }
            #expect(ChangeToken(token.description) == token)
            for text in [
                "", "bt1", "bt1:a", "bt1:a:-1", "bt1:a:x", "bt2:a:1", "bt1:a:1:2", "bt1:a:99999999999999999999",
            ] {
                #expect(ChangeToken(text) == nil)
            }
        }
    }
}
