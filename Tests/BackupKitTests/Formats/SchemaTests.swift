import TestSupport
import Testing

@testable import BackupKit

/// A schema of one entity `E` and whatever else is given.
private func file(_ attributes: String, relationships: String = "", more: String = "", version: Int = 120) -> String {
    """
    {"format": "backup-tool-schema", "formatVersion": 1, "version": \(version), "entities": {
      "E": {"attributes": {\(attributes)}, "relationships": {\(relationships)}}\(more)}}
    """
}

extension String {
    fileprivate func with(_ new: String, for old: String) -> String {
        guard let range = firstRange(of: old) else { return self }
        return String(self[..<range.lowerBound]) + new + String(self[range.upperBound...])
    }
}

private func parse(_ text: String) throws -> (schema: DataSchema, findings: [Finding]) {
    var findings: [Finding] = []
    let schema = try Array(text.utf8).withUnsafeBytes { try DataSchema(parsing: $0, &findings) }
    return (schema, findings)
}

private func lint(_ text: String) throws -> [String] {
    let (schema, findings) = try parse(text)
    return (findings + SchemaLint.check(schema)).map { "\($0.severity) \($0.code.rawValue) \($0.subject)" }
}

private func evolution(_ old: String, _ new: String) throws -> [String] {
    SchemaEvolution.check(from: try parse(old).schema, to: try parse(new).schema)
        .map { "\($0.severity) \($0.code.rawValue) \($0.subject)" }
}

@Suite struct SchemaTests {
    @Test func aSchemaThatCloudKitCanCarryHasNoFindings() throws {
        let other = ", \"F\": {\"relationships\": {\"e\": {\"to\": \"E\", \"inverse\": \"fs\"}}}"
        let text = file(
            "\"a\": {\"type\": \"string\", \"optional\": true}, \"b\": {\"type\": \"date\", \"default\": \"2026-01-01\"}",
            relationships: "\"fs\": {\"to\": \"F\", \"toMany\": true, \"inverse\": \"e\"}", more: other)
        #expect(try lint(text) == [])
    }

    @Test(arguments: [
        ("\"a\": {\"type\": \"string\"}", "error schema-no-default E.a"),
        ("\"a\": {\"type\": \"string\", \"default\": null}", "error schema-no-default E.a"),
        ("\"a\": {\"type\": \"string\", \"optional\": true, \"unique\": true}", "error schema-unique E.a"),
        ("\"a\": {\"type\": \"strnig\", \"optional\": true}", "error schema-invalid E.a"),
        ("\"a\": {\"type\": \"integer\", \"default\": \"1\"}", "error schema-invalid E.a"),
        ("\"a\": {\"type\": \"integer\", \"default\": 1.5}", "error schema-invalid E.a"),
        ("\"a\": {\"type\": \"date\", \"default\": \"soon\"}", "error schema-invalid E.a"),
        ("\"a\": {\"type\": \"boolean\", \"optonal\": true, \"optional\": true}", "error schema-invalid E.a"),
        ("\"a\": {\"type\": \"boolean\", \"optional\": 1, \"default\": true}", "error schema-invalid E.a"),
        ("\"a\": 7, \"b\": {\"type\": \"string\", \"optional\": true}", "error schema-invalid E.a"),
    ])
    func whatAnAttributeMayNotBeIsSaidByItsName(_ attributes: String, expected: String) throws {
        let found = try lint(file(attributes))
        #expect(found.contains(expected), "\(found)")
    }

    @Test(arguments: [
        ("{\"to\": \"F\"}", "error schema-no-inverse E.r"),
        ("{\"to\": \"F\", \"inverse\": \"nope\"}", "error schema-no-inverse E.r"),
        ("{\"to\": \"F\", \"inverse\": \"other\"}", "error schema-no-inverse E.r"),
        ("{\"to\": \"G\", \"inverse\": \"e\"}", "error schema-invalid E.r"),
        ("{\"to\": \"F\", \"inverse\": \"e\", \"deleteRule\": \"drop\"}", "error schema-invalid E.r"),
        ("{\"to\": \"F\", \"inverse\": \"e\", \"deleteRule\": \"deny\"}", "error schema-cloudkit E.r"),
        ("{\"to\": \"F\", \"inverse\": \"e\", \"ordered\": true}", "error schema-cloudkit E.r"),
        ("{\"to\": \"F\", \"inverse\": \"e\", \"optional\": false}", "error schema-cloudkit E.r"),
    ])
    func aRelationshipNeedsAnInverseThatNamesIt(_ relationship: String, expected: String) throws {
        let more =
            ", \"F\": {\"relationships\": {\"e\": {\"to\": \"E\", \"inverse\": \"r\"}, \"other\": {\"to\": \"E\", \"inverse\": \"x\"}}}"
        let found = try lint(file("", relationships: "\"r\": \(relationship)", more: more))
        #expect(found.contains(expected), "\(found)")
    }

    @Test func constraintsOverSeveralFieldsAreFoundInEachOfThem() throws {
        let text = file("").with("\"unique\": [[\"a\", \"b\"]], \"attributes\": {}", for: "\"attributes\": {}")
        #expect(try lint(text).filter { $0.contains("schema-unique") }.count == 2)
    }

    @Test(
        arguments: [
            // What is new and optional, or has a default, is fine.
            (["a": "string?"], ["a": "string?", "b": "integer?"], []),
            (["a": "string?"], ["a": "string?", "b": "integer=1"], []),
            (["a": "string?"], ["a": "string?", "b": "integer"], ["error schema-not-additive E.b"]),
            (["a": "string?", "b": "integer?"], ["a": "string?"], ["error schema-removed E.b"]),
            (["a": "string?"], ["b": "string?"], ["error schema-renamed E.a"]),
            (["a": "string?"], ["b": "integer?"], ["error schema-removed E.a"]),
            (["a": "string?"], ["a": "integer?"], ["error schema-type-changed E.a"]),
            (["a": "string?"], ["a": "string"], ["error schema-not-additive E.a"]),
            (["a": "string?"], ["a": "string=\"x\""], ["warning schema-not-additive E.a"]),
            (["a": "string=\"x\""], ["a": "string=\"y\""], ["warning schema-not-additive E.a"]),
            (["a": "string"], ["a": "string?"], []),
        ] as [([String: String], [String: String], [String])])
    func whatOlderDataHasMustStayAndMeanTheSame(old: [String: String], new: [String: String], expected: [String]) throws
    {
        func attributes(_ fields: [String: String]) -> String {
            fields.sorted { $0.key < $1.key }.map { name, what in
                let isOptional = what.hasSuffix("?")
                let parts = what.split(separator: "=", maxSplits: 1)
                let standard = parts.count == 2 ? ", \"default\": \(parts[1])" : ""
                let type = parts[0].filter { $0 != "?" }
                return "\"\(name)\": {\"type\": \"\(type)\", \"optional\": \(isOptional)\(standard)}"
            }.joined(separator: ", ")
        }
        #expect(try evolution(file(attributes(old), version: 110), file(attributes(new))) == expected)
    }

    @Test func entitiesAndRelationshipsMustStayToo() throws {
        let more = ", \"F\": {\"relationships\": {\"e\": {\"to\": \"E\", \"inverse\": \"r\"}}}"
        let old = file("", relationships: "\"r\": {\"to\": \"F\", \"inverse\": \"e\"}", more: more, version: 110)
        #expect(try evolution(old, file("")) == ["error schema-removed E.r", "error schema-removed F"])
        let many = file("", relationships: "\"r\": {\"to\": \"F\", \"toMany\": true, \"inverse\": \"e\"}", more: more)
        #expect(try evolution(old, many) == ["error schema-type-changed E.r"])
        let turned = file("\"r\": {\"type\": \"string\", \"optional\": true}", more: more)
        #expect(try evolution(old, turned) == ["error schema-type-changed E.r"])
        #expect(try evolution(file("", version: 120), file("", version: 110)) == ["error schema-version version"])
        #expect(try evolution(old, old) == [])
    }

    @Test func whatIsNoSchemaIsSaidSoAndNothingTraps() throws {
        for text in ["", "{}", "[]", "{\"format\":\"backup-tool-schema\"}", file("").with("\"x\"", for: "120")] {
            #expect(throws: BackupError.self) { try parse(text) }
        }
        let whole = Array(file("\"a\": {\"type\": \"string\", \"default\": \"\"}").utf8)
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<300 {
            var bytes = whole
            for _ in 0...random.below(3) { bytes[random.below(bytes.count)] = UInt8(random.below(256)) }
            _ = try? parse(String(decoding: bytes, as: UTF8.self))
        }
    }

    @Test func aCoreDataModelIsCheckedLikeAFileOfOurOwn() throws {
        let model = """
            <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
            <!-- <entity name="No"/> -->
            <model type="com.apple.IDECoreDataModeler.DataModel" userDefinedModelVersionIdentifier="120">
                <entity name="CDPublication" representedClassName="CDPublication" syncable="YES">
                    <attribute name="citeKey" attributeType="String" defaultValueString="a &amp; b&#33;"/>
                    <attribute name="year" optional="YES" attributeType="Integer 32" defaultValueString="0" usesScalarValueType="YES"/>
                    <attribute name="added" attributeType="Date" defaultDateTimeInterval="0" usesScalarValueType="NO"/>
                    <attribute name="bare" attributeType='Boolean'/>
                    <attribute name="cache" transient="YES" attributeType="Undefined"/>
                    <relationship name="notes" optional="YES" toMany="YES" deletionRule="Cascade"
                        destinationEntity="CDNote" inverseName="publication" inverseEntity="CDNote"/>
                    <uniquenessConstraints><uniquenessConstraint><constraint value="citeKey"/></uniquenessConstraint></uniquenessConstraints>
                </entity>
                <entity name="CDNote">
                    <relationship name="publication" optional="YES" maxCount="1" deletionRule="No Action" destinationEntity="CDPublication" inverseName="notes"/>
                    <relationship name="other" maxCount="1" deletionRule="Deny" destinationEntity="CDNote"/>
                </entity>
                <entity name="Empty"/>
            </model>
            """
        var findings: [Finding] = []
        let schema = try Array(model.utf8).withUnsafeBytes { bytes in
            #expect(DataSchema.looksLikeCoreData(bytes))
            return try DataSchema(coreData: bytes, &findings)
        }
        #expect(schema.version == 120 && schema.entities.map(\.name) == ["CDPublication", "CDNote", "Empty"])
        #expect(schema.entities[0].attributes.map(\.type) == ["string", "integer", "date", "boolean"])
        #expect(schema.entities[0].attributes[0].defaultValue == "a & b!")
        #expect(schema.entities[0].attributes[2].defaultValue == "2001-01-01T00:00:00.000Z")
        let found = (findings + SchemaLint.check(schema)).map { "\($0.severity) \($0.code.rawValue) \($0.subject)" }
        #expect(
            found == [
                "error schema-no-default CDPublication.bare", "error schema-unique CDPublication.citeKey",
                "error schema-cloudkit CDNote.other", "error schema-cloudkit CDNote.other",
                "error schema-no-inverse CDNote.other",
            ])
        // Cut at any place, or with more behind its end, it is none.
        let whole = Array(model.utf8)
        for bytes in (0..<whole.count).map({ Array(whole.prefix($0)) })
            + ["<entity name=\"C\"/>", "</model>"].map({ whole + $0.utf8 })
        {
            #expect(throws: BackupError.self, "\(bytes.count) bytes") {
                try bytes.withUnsafeBytes { _ = try DataSchema(coreData: $0, &findings) }
            }
        }
        // Damaged at any place it is refused, or read as what is left.
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<500 {
            var bytes = Array(whole.prefix(random.below(whole.count + 1)))
            if !bytes.isEmpty { bytes[random.below(bytes.count)] = UInt8(random.below(256)) }
            _ = try? bytes.withUnsafeBytes { try DataSchema(coreData: $0, &findings) }
        }
    }

    @Test func defaultsFillWhatIsMissingAndLoseAgainstEveryValue() throws {
        let (schema, _) = try parse(
            file(
                "\"a\": {\"type\": \"string\", \"default\": \"x\"}, \"b\": {\"type\": \"integer\", \"default\": 0}, "
                    + "\"c\": {\"type\": \"string\", \"optional\": true, \"default\": \"no\"}, \"d\": {\"type\": \"json\"}"
            ))
        var old = record("n", "{\"b\":7,\"own\": [1 ]}", at: 5, type: "E")
        old.schemaVersion = 100
        let filled = try schema.fill(old)
        #expect(filled.record.fields == "{\"b\":7,\"own\":[1 ],\"a\":\"x\"}")
        #expect(filled.fields == ["a"] && filled.missing == ["d"] && filled.record.schemaVersion == 120)
        #expect(filled.record.fieldTimes == ["a": DataSchema.defaultTime])
        #expect(try schema.fill(record("n", "{\"a\":null}", type: "E")).fields == ["a", "b"])
        #expect(try schema.fill(record("n", "{}", type: "Other")).fields.isEmpty)
        #expect(try schema.fill(record("n", type: "E", deleted: true)).fields.isEmpty)
        try withStore { test in
            try test.store.take(record("n", "{\"a\":\"mine\",\"b\":1}", at: 1, type: "E"))
            try test.store.take(filled.record)
            let fields = try Fields.parse(try test.store.all()[0].fields)
            #expect(Fields.string("a", in: fields) == "mine" && fields.contains(Field("b", "7")))
        }
    }

    @Test func dataThatIsNewerThanTheToolIsNotTaken_butItsTombstonesAre() throws {
        try withStore { test in
            test.clock.advance(seconds: 1_000_000)
            try test.store.take(record("a", "{\"x\":1}"), record("b", "{\"x\":1}"))
            let before = try test.store.digest()
            let intake = Intake(test.store)
            for version in [121, 999, 99, 115] {
                var new = record("a", "{\"x\":2}", at: 10)
                new.schemaVersion = version
                try test.store.write { _ = try intake.take(new) }
            }
            #expect(try test.store.digest() == before)
            let result = intake.finished(nil)
            #expect(result.rejected == 4 && result.needsAttention)
            #expect(Set(result.findings.map(\.code)) == [.newerSchema])
            var gone = record("b", at: 10, deleted: true)
            gone.schemaVersion = 999
            try test.store.write { _ = try intake.take(gone) }
            #expect(try test.store.all().map(\.isDeleted) == [false, true])
        }
    }
}
