import TestSupport
import Testing

@testable import BackupKit

/// A purge beside a reader.
@Suite struct PurgeReaderTests {
    @Test(arguments: [false, true]) func aReaderOfTheStateBeforeAPurge_hasItsFiles(isEdited: Bool) throws {
        try withStore { test in
            let store = test.store
            _ = try store.batch(kind: "import", source: "test") {
                for name in ["a", "b"] { _ = try place("Attachments/\(name).pdf", "bytes of \(name)", in: store) }
                return ((), summary: "{}")
            }
            let publication = record(
                "k", #"{"linkedFiles":["Attachments/a.pdf"]}"#, type: RecordType.publication, zone: "Library")
            _ = try store.bringBack([publication], .honor)
            test.clock.advance()
            _ = try store.curate(.delete, ["k"])
            let path = "\(store.assetFolder)/Attachments/a.pdf"
            if isEdited {
                try Directory.removeTree(path)
                try writeFile(path, "edited bytes")
            }
            var options = PurgeOptions()
            options.ids = ["k"]
            options.withFiles = true
            func readBeside() throws {
                let reader = try Store(store.path, .read)
                try reader.read {
                    var assets: [Asset] = []
                    try reader.forEachAsset { assets.append($0) }
                    #expect(assets.count == 2)
                    let error = #expect(throws: BackupError.self) { _ = try Purge.run(store, options) }
                    #expect(error?.code == .temporary, "\(String(describing: error))")
                    let files = try #require(try AssetFiles(of: reader))
                    // What an app has written since was never in that state.
                    for asset in assets where !isEdited || asset.path.hasSuffix("b.pdf") {
                        #expect(try files.open(asset).file.digest() == asset.digest, "\(asset.path)")
                    }
                }
            }
            try readBeside()
            options.ids = []
            _ = try Purge.run(store, options)
            #expect(try FileStatus.ofName(path) == nil)
            #expect(try Directory.names(in: "\(store.assetFolder)/.blobs").isEmpty)
            #expect(try store.filesToPurge() == nil)
        }
    }
}
