/// Reads lines of an event log as fast as they can be read. What is ordinary is understood here; of everything else
/// `EventLine`, which is strict, decides. One scanner serves one thread.
final class EventScanner {
    /// An ordinary line's facts. `id` lasts until the next line.
    struct Event {
        let id: UnsafeRawBufferPointer
        let createdAt: Timestamp
        let modifiedAt: Timestamp
        let time: LocalTime
        let localID: EventText.LocalIDForm
        fileprivate let typeText: UnsafeRawBufferPointer

        var type: String { String(decoding: typeText, as: UTF8.self) }
    }

    private let parser = LineParser()
    /// The relative paths that the last line names as media.
    private(set) var media: [String] = []

    private struct Found {
        var id: UnsafeRawBufferPointer?
        var localID: UnsafeRawBufferPointer?
        var time: UnsafeRawBufferPointer?
        var type: UnsafeRawBufferPointer?
        var created: UnsafeRawBufferPointer?
        var modified: UnsafeRawBufferPointer?
        var isOrdinary = true
    }

    /// Nil when the line is none that can be understood here. `LineParser.padding` bytes behind it MUST be readable.
    func scan(_ line: UnsafeRawBufferPointer) -> Event? {
        if !media.isEmpty { media.removeAll(keepingCapacity: true) }
        var found = Found()
        let isRead = parser.forEachMember(of: line) { member in
            switch member.key.count {
            case 2 where Self.equal(member.key, "id"): found.id = Self.text(member, &found.isOrdinary)
            case 4 where Self.equal(member.key, "time"): found.time = Self.text(member, &found.isOrdinary)
            case 4 where Self.equal(member.key, "type"): found.type = Self.text(member, &found.isOrdinary)
            case 5 where Self.equal(member.key, "photo") || Self.equal(member.key, "video"):
                takeMedia(member, &found.isOrdinary)
            case 7 where Self.equal(member.key, "localId"): found.localID = Self.text(member, &found.isOrdinary)
            case 9 where Self.equal(member.key, "eventTime") || Self.equal(member.key, "eventType"):
                found.isOrdinary = false
            case 10 where Self.equal(member.key, "created_at"): found.created = Self.text(member, &found.isOrdinary)
            case 11 where Self.equal(member.key, "modified_at"): found.modified = Self.text(member, &found.isOrdinary)
            case 14 where Self.equal(member.key, "thumbnail_path"): takeMedia(member, &found.isOrdinary)
            default: break
            }
        }
        guard isRead, found.isOrdinary, let id = found.id ?? found.localID,
            let time = found.time.flatMap(LocalTime.init),
            let type = found.type
        else { return nil }
        var (created, modified) = (time.instant, time.instant)
        if let text = found.created {
            guard let time = LocalTime(text) else { return nil }
            created = time.instant
        }
        if let text = found.modified {
            guard let time = LocalTime(text) else { return nil }
            modified = time.instant
        }
        let form: EventText.LocalIDForm =
            switch (found.id, found.localID) {
            case (_, nil): .none
            case (nil, _): .alone
            case (let id?, let other?): sameBytes(id, other) ? .none : .beside
            }
        return Event(id: id, createdAt: created, modifiedAt: modified, time: time, localID: form, typeText: type)
    }

    /// The text of a string that says something; nothing when the member is null.
    private static func text(_ member: LineParser.Member, _ isOrdinary: inout Bool) -> UnsafeRawBufferPointer? {
        if let text = member.text, text.count > 0 { return text }
        isOrdinary = isOrdinary && member.isNull
        return nil
    }

    private func takeMedia(_ member: LineParser.Member, _ isOrdinary: inout Bool) {
        guard let text = member.text else { return }
        let path = String(decoding: text, as: UTF8.self)
        guard !path.isEmpty, !path.contains("://") else { return }
        if EventLine.leadsOutside(path) { isOrdinary = false } else { media.append(path) }
    }

    /// Two texts of one length; the first byte tells most apart.
    @inline(__always)
    private static func equal(_ bytes: UnsafeRawBufferPointer, _ text: StaticString) -> Bool {
        bytes[0] == text.utf8Start[0]
            && sameBytes(bytes, UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
}
