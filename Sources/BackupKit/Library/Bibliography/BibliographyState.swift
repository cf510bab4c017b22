extension BibliographyIntake {
    /// What is known while one file is read.
    struct FileState {
        var name: String
        /// Written by us: what it holds came from elsewhere, and most of it is known.
        var isExport = false
        /// The name of the file that this one was at its old place, where it had another one there.
        var nameAtOldPlace: String?
        /// Whether it was imported from its place before. Only here is another text with an equal title an edit; elsewhere
        /// authors, volume and pages tell one "Editorial" from the next.
        var isAtItsPlace = false
        /// An export that keeps the order of its sources.
        var isInOrder = false
        var hasNewParts = false
        let text: FileHandle
        let path: String
        /// Where the file really lies; nil of a backup's, which has no place of its own.
        let realPath: String?
        /// The path as people know it: a backup's file was unpacked for this import only.
        var shownPath: String { realPath == nil ? lastComponent(of: path) : path }
        /// Under which name the store remembers what it says; nil where nothing is remembered.
        let memory: String?
        let time: Timestamp
        var macros = BibMacros.standard
        /// Those that entries use where the file has not defined them, in lower case.
        var unknownMacros: Set<String> = []
        var items: [String] = []
        /// The how manieth file of this import.
        let number: Int
        /// How often each text was met, of entries by a hash.
        var entries: [UInt64: Int] = [:]
        var texts: [String: Int] = [:]
        /// Publications with other keys by now that entries of this file are.
        var renamed: Set<String> = []
        /// What the entry at hand links by our own lines, and what it names.
        var links: [String] = []
        var wishes = 0..<0
        /// What our own lines say of entries that are still to come.
        var lines = EntryLines()
        /// How often each slot was met, and the records of all parts that this file holds.
        var slots: [String: Int] = [:]
        var parts: Set<String> = []
        /// What the file holds, by `BibliographyPartIDs.text`; nil until a part may be another version of what it holds, too.
        var allTexts: Set<[UInt8]>?
        /// Whether it holds anything of BibTeX, and text that is no comment.
        var hasBlocks = false
        var hasStrayText = false
        /// Marks of all that the file says, and whether a part of it could not be read.
        var brought: [UInt64] = []
        /// Marks of what earlier imports of the file brought.
        var broughtBefore = Brought([])
        /// Since when the file has said each value of a record or part: before this import, and after it.
        var saidBefore = HeldSince()
        var said: [Timestamp: [UInt64]] = [:]
        let importTime: Timestamp
        /// Publications that the file brought under keys that they have no more; nil until an entry may be one.
        var moved: [(key: String, index: Int)]?
        /// Deleted publications that the file brought; nil until an entry may be one.
        var deleted: (ofApps: [String], held: [String])?
        /// Hashes of the keys that stand more than once in the file; nil until an entry was edited.
        var twins: Set<UInt64>?
        var isDamaged = false
        /// A damaged row of the store that an entry or a part may be.
        var damagedRow: String?
        /// Whether entries were passed over that nobody wants.
        var hasUnwanted = false
        /// Keys of entries with something new that the store does not take, by the reason.
        var leftOut: [Protection: [String]] = [:]
        /// How many macros, groups and comments are new in the file, and not taken.
        var partsLeftOut = 0
        /// The marks of all differences that this import reports.
        var reported: Set<UInt64> = []
        /// What the other files say; nil until an entry differs from the store.
        var others: OtherFiles?
        /// Publications that this import has added or brought back.
        var arrived: Set<String> = []
        /// The key of the entry at hand, and entries that are taken when all others have been (`takeWaiting`).
        var key = ""
        var waiting: [EntryWaiting] = []
        /// Publications that are kept on this device only, of which values were left out: what to call them, and their ids.
        var leftHere: [(name: String, id: RecordID)] = []
        /// What the file's entries say, by the local ids of their publications; only noted where it is mirrored.
        var held: [String: [Field]] = [:]
        /// The files that publications named before this import because this file had said so; noted where it is mirrored.
        var namedBefore: [String: [String]] = [:]
    }
}
