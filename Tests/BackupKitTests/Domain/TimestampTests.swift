import BackupKit
import TestSupport
import Testing

@Suite struct TimestampTests {
    @Test(arguments: [
        ("2026-02-14T15:00+01:00", "2026-02-14T14:00:00.000Z"),
        ("2026-02-14T15:00:30-0530", "2026-02-14T20:30:30.000Z"),
        ("2026-02-14T15:00:30.25Z", "2026-02-14T15:00:30.250Z"),
        ("2026-02-14 15:00:30,123456789", "2026-02-14T15:00:30.123Z"),
        ("2026-02-14t15:00:00z", "2026-02-14T15:00:00.000Z"),
        ("2026-02-14", "2026-02-14T00:00:00.000Z"),
        ("2026-02-14T00:30+01", "2026-02-13T23:30:00.000Z"),
        ("2024-02-29T12:00Z", "2024-02-29T12:00:00.000Z"),
        ("2000-02-29T12:00Z", "2000-02-29T12:00:00.000Z"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"),
        ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        ("0001-01-01T00:00Z", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
    ])
    func aTimeIsReadWhateverItsOffsetAndPrecision(text: String, expected: String) {
        #expect(Timestamp(iso8601: text)?.iso8601 == expected)
    }

    @Test(arguments: [
        "", "2026", "2026-02", "2026-2-14", "2026-02-30", "2023-02-29", "1900-02-29", "2026-13-01", "2026-00-10",
        "2026-02-14T", "2026-02-14T15", "2026-02-14T24:00", "2026-02-14T15:60", "2026-02-14T15:00:61",
        "2026-02-14T15:00:00.", "2026-02-14T15:00+", "2026-02-14T15:00+1", "2026-02-14T15:00+19:00",
        "2026-02-14T15:00+01:60", "2026-02-14T15:00Zx", "2026-02-14T15:00 ", " 2026-02-14", "+026-02-14", "-001-01-01",
        "0000-01-01", "10000-01-01T00:00Z", "2026-02-14T15:00:00+01:00:00", "２０２６-02-14", "2026-02-14T1é:00",
        "0001-01-01T00:00+18:00", "9999-12-31T23:59-18:00", "9999-12-31T23:59:60Z",
    ])
    func whatIsNoTimeIsRefused(text: String) { #expect(Timestamp(iso8601: text) == nil) }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func whatIsWrittenIsReadAgain(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<100 {
            let milliseconds = Int64.random(in: -62_135_596_800_000...253_402_300_799_999, using: &random)
            let time = Timestamp(milliseconds: milliseconds)
            #expect(time.milliseconds == milliseconds)
            #expect(Timestamp(iso8601: time.iso8601) == time)
            #expect(time.iso8601.utf8.count == 24)
        }
    }

    @Test(arguments: [Int64.min, .min + 1, -62_135_596_800_001, 0, 253_402_300_800_000, .max - 1, .max])
    func noInstantOverflows(milliseconds: Int64) {
        let time = Timestamp(milliseconds: milliseconds)
        #expect(Timestamp(iso8601: time.iso8601) == time)
        #expect(time.appleReference.isFinite)
        #expect(Timestamp(milliseconds: time.milliseconds + 1) >= time)
        #expect(CivilDate(daysSinceEpoch: milliseconds).text.utf8.count == 10)
    }

    @Test func appleReferenceDatesCountFrom2001() {
        #expect(Timestamp(appleReference: 0)?.iso8601 == "2001-01-01T00:00:00.000Z")
        #expect(Timestamp(appleReference: 792_000_000.5)?.iso8601 == "2026-02-05T16:00:00.500Z")
        #expect(Timestamp(iso8601: "2026-02-05T16:00:00.5Z")?.appleReference == 792_000_000.5)
        for seconds in [Double.nan, .infinity, -.infinity, .greatestFiniteMagnitude, 1e300, -1e12, 2.6e11] {
            #expect(Timestamp(appleReference: seconds) == nil)
        }
    }

    @Test func anEventBelongsToTheDayOnItsOwnWall() {
        #expect(LocalTime("2026-02-14T00:10+01:00")?.day.text == "2026-02-14")
        #expect(LocalTime("2026-02-13T23:10-05:00")?.day.text == "2026-02-13")
    }

    @Test func everyDayOf400YearsHasItsOwnDate() {
        var last = CivilDate(daysSinceEpoch: -141_428)
        var wrong: [Int64] = []
        for day in Int64(-141_427)...4_670 {
            let date = CivilDate(daysSinceEpoch: day)
            if last >= date || CivilDate(year: date.year, month: date.month, day: date.day) != date {
                wrong.append(day)
            }
            last = date
        }
        #expect(wrong.isEmpty)
    }
}
