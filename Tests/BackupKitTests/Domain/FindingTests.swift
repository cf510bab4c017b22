import TestSupport
import Testing

@testable import BackupKit

/// I140. A code that is not in this list ends a command with 3. Whoever adds one says why nothing was left out.
@Test func onlyTheseFindingsMayPassAsNotes() {
    let mayBeNotes: [Finding.Code: String] = [
        .willNotSync: "an export was asked for, and it holds the file",
        .notAskedFor: "the default of --only is documented to leave it out",
        .keptAsWritten: "every byte of it is there",
        .entryUnexpected: "there is more than expected, not less",
        .clockSkew: "a sync kept a time that is ahead, and follows it",
        .untidy: "something is left over, and nothing needs it",
        .defaultFilled: "--schema asks for it",
        .schemaInvalid: "a schema file was read, and this is how",
        .schemaVersion: "a schema file was compared, and this is how",
    ]
    #expect(Finding.Code.notes == Set(mayBeNotes.keys))
    for code in Finding.Code.allCases {
        for severity in Finding.Severity.allCases {
            let found = Finding(code, severity, "subject", "message").severity
            let isRaised = severity == .note && mayBeNotes[code] == nil
            #expect(found == (isRaised ? .warning : severity), "\(code)")
        }
    }
}

@Test func theDocumentListsEveryCode_andNamesTheStoresVersion() throws {
    let path = "\(projectFolder)/docs/formats.md"
    var bytes: [UInt8] = []
    try FileHandle.openForReading(path).forEachChunk { bytes += $0 }
    let text = String(decoding: bytes, as: UTF8.self)
    for code in Finding.Code.allCases where !code.rawValue.hasPrefix("schema-") {
        #expect(text.contains("`\(code.rawValue)`"), "docs/formats.md does not list \(code.rawValue)")
    }
    #expect(text.contains("`user_version` \(StoreSchema.version) "))
}

@Test func addressesAreToldFromPaths() {
    let addresses = [
        "postgresql://host/db": "postgresql", "S3:bucket": "s3", "sftp:me@host:/x": "sftp", "x+y://z": "x+y",
        "rest:http://host/": "rest", "vault:/x": "vault", "file:///x": "file",
    ]
    for (word, scheme) in addresses { #expect(LocalPath.scheme(of: word) == scheme, "\(word)") }
    for path in ["a", "/a:b", "./s3:x", "backup-15:30.tar", "C:x", "a b://c", "", ":", "1://x", "://x", "é://x"] {
        #expect(LocalPath.scheme(of: path) == nil, "\(path)")
    }
}
