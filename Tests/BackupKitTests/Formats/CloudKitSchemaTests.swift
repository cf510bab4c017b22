import TestSupport
import Testing

@testable import BackupKit

private let schema = """
    DEFINE SCHEMA
        -- Exported by cktool.
        CREATE ROLE "editor";
        RECORD TYPE Day (
            "___createTime" TIMESTAMP QUERYABLE SORTABLE,
            "___recordID"   REFERENCE QUERYABLE,
            CD_date         TIMESTAMP QUERYABLE SORTABLE,
            CD_line1        STRING QUERYABLE SEARCHABLE, // OS
            CD_line2        ENCRYPTED STRING,
            CD_tags         LIST<STRING> QUERYABLE,
            CD_photo        ASSET,
            /* a number
               that was guessed */
            CD_count        NUMBER PREFERRED AS INT64,
            GRANT READ, WRITE TO "_creator",
            GRANT READ TO "_world"
        );
        RECORD TYPE Users ( roles LIST<INT64> );
    """

private func check(_ text: String, against old: String? = nil) throws -> [String] {
    func read(_ text: String, _ findings: inout [Finding]) throws -> DataSchema {
        try Array(text.utf8).withUnsafeBytes { bytes in
            #expect(DataSchema.looksLikeCloudKit(bytes))
            return try DataSchema(cloudKit: bytes, &findings)
        }
    }
    var findings: [Finding] = []
    let new = try read(text, &findings)
    findings += SchemaLint.check(new)
    var ofOld: [Finding] = []
    if let old { findings += SchemaEvolution.check(from: try read(old, &ofOld), to: new) }
    return findings.map { "\($0.severity.rawValue) \($0.code.rawValue) \($0.subject)" }
}

@Suite struct CloudKitSchemaTests {
    @Test func aSchemaInCloudKitsOwnLanguageIsRead() throws {
        var findings: [Finding] = []
        let read = try Array(schema.utf8).withUnsafeBytes { try DataSchema(cloudKit: $0, &findings) }
        #expect(findings.isEmpty && read.form == .cloudKit && read.entities.map(\.name) == ["Day", "Users"])
        #expect(
            read.entities[0].attributes.map { "\($0.name) \($0.type)" } == [
                "CD_date TIMESTAMP", "CD_line1 STRING", "CD_line2 ENCRYPTED STRING", "CD_tags LIST<STRING>",
                "CD_photo ASSET", "CD_count INT64",
            ])
        #expect(try check(schema, against: schema) == [])
    }

    @Test(arguments: [
        ("CD_date         TIMESTAMP", "CD_date STRING", ["error schema-type-changed Day.CD_date"]),
        ("CD_line2        ENCRYPTED STRING", "CD_line2 STRING", ["error schema-type-changed Day.CD_line2"]),
        (
            "CD_line2        ENCRYPTED STRING", "CD_line2 ENCRYPTED STRING QUERYABLE",
            ["error schema-cloudkit Day.CD_line2"]
        ),
        ("CD_photo        ASSET", "CD_photo ASSET QUERYABLE", ["error schema-cloudkit Day.CD_photo"]),
        ("CD_photo        ASSET,", "CD_photo ASSET, cd_PHOTO ASSET,", ["error schema-cloudkit Day.cd_PHOTO"]),
        ("CD_photo        ASSET,", "CD_photo ASSET, \"1st\" STRING,", ["error schema-cloudkit Day.1st"]),
        ("NUMBER PREFERRED AS INT64", "INT64 SEARCHABLE", ["error schema-cloudkit Day.CD_count"]),
        ("LIST<STRING> QUERYABLE", "LIST<STRING> SORTABLE", ["error schema-cloudkit Day.CD_tags"]),
        (
            "LIST<INT64>", "LIST<INTEGER>",
            ["error schema-cloudkit Users.roles", "error schema-type-changed Users.roles"]
        ),
    ])
    func whatCloudKitDoesNotTakeIsSaid(_ old: String, _ new: String, _ expected: [String]) throws {
        let changed = schema.split(separator: old, omittingEmptySubsequences: false).joined(separator: new)
        #expect(try check(changed, against: schema) == expected)
    }

    @Test func whatIsCutAnywhereOrDamagedIsAnErrorAndNeverTraps() throws {
        var random = SeededGenerator(seed: testSeed())
        for length in 0..<schema.utf8.count {
            var findings: [Finding] = []
            _ = try? Array(schema.utf8)[..<length].withUnsafeBytes { try DataSchema(cloudKit: $0, &findings) }
            var bytes = Array(schema.utf8)
            bytes[random.below(bytes.count)] = UInt8(random.below(256))
            _ = try? bytes.withUnsafeBytes { try DataSchema(cloudKit: $0, &findings) }
        }
    }
}
