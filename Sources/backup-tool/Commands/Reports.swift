import BackupKit

// How results look, in text and in JSON: one place for all commands.

extension Invocation {
    /// The kinds named by `--only`, or `usual`.
    func kinds(else usual: Set<Kind> = Set(Kind.allCases)) -> Set<Kind> {
        let named = Set(values("only").compactMap(Kind.init(rawValue:)))
        return named.isEmpty ? usual : named
    }

    /// How much a foreign archive may ask of us.
    func limits() throws -> ReadLimits {
        let settings = try configuration()
        var limits = ReadLimits()
        if let bytes = settings.integer("limits.max-entry-bytes") { limits.entryBytes = Int64(bytes) }
        if let bytes = settings.integer("limits.max-total-bytes") { limits.totalBytes = Int64(bytes) }
        if let count = settings.integer("limits.max-entries") { limits.entries = count }
        if let bytes = settings.integer("limits.max-line-bytes") { limits.lineBytes = bytes }
        if let ratio = settings.number("limits.max-ratio") { limits.ratio = Int64(ratio) }
        return limits
    }

    /// What an import or restore did.
    func report(_ result: IntakeResult, as what: String, dryRun: Bool) -> ExitStatus {
        if output.isJSON {
            output.report(result.json(as: what, dryRun: dryRun))
        } else {
            if dryRun || output.isVerbose {
                let files = result.attachmentsAdded + result.attachmentsMended + result.attachmentsRemoved
                let most = result.added + result.updated + result.removed + result.protected + files
                show(result.plan, of: most + result.linked + result.kept + result.quarantined + result.settingsChanged)
            }
            say(result.findings)
            // Most conflicts have a finding of their own.
            if result.conflicts > 0, !result.findings.contains(where: { $0.code == .conflict }) {
                output.warn(
                    "\(HumanText.count(result.conflicts, "conflict")) wait\(result.conflicts == 1 ? "s" : "") for a decision"
                )
                output.say("  'backup-tool conflicts list' lists the conflicts")
            }
            output.note(result.sentence(of: what, dryRun: dryRun))
            if result.protected + result.keptNewer > 0, !dryRun, !output.isVerbose {
                var advice = "--verbose says why"
                if what == "import" {
                    // Of what the command has, and was not used.
                    if !flag("overwrite") { advice += ", --overwrite takes what the files say" }
                    if isDeclared("mirror"), !flag("mirror"), mayNameEntries {
                        advice += ", --mirror removes what a .bib file no longer holds"
                    }
                }
                if what == "restore", result.stayedDeleted > result.stayedPurged {
                    advice += ", --resurrect brings back what was deleted"
                }
                let which = result.protected > 0 ? "is protected" : "is newer"
                output.note("What \(which) stays as the store has it: \(advice).")
            }
            if let batch = result.batch { output.detail("'backup-tool undo' takes back batch \(batch)") }
        }
        return result.findings.contains { $0.severity == .damage } || result.needsAttention ? .incomplete : .done
    }

    /// Whether a path of an import may hold a `.bib` file.
    private var mayNameEntries: Bool {
        arguments("PATH").contains { !$0.hasSuffix(".jsonl") && !$0.hasSuffix(".json") }
    }

    /// Prints a plan, of which `all` items may be more than it lists.
    func show(_ plan: [PlanItem], of all: Int) {
        let style = output.out.style
        for item in plan {
            if output.isClosed { return }
            let mark =
                switch item.action {
                case .add: style.good("+")
                case .update: style.changed("~")
                case .keep: style.dim("^")
                case .quarantine: style.warning("?")
                case .remove: style.bad("-")
                case .protect: style.dim("=")
                case .conflict: style.warning("!")
                }
            let reason = item.reason.map { "  (\($0))" } ?? ""
            // A file has no other name.
            let subject = item.subject == item.label ? "" : "  \(style.dim(printable(item.subject)))"
            output.print("\(mark) \(printable(item.label))\(subject)\(reason)")
            for change in item.changes { output.print("    \(change.summary)") }
        }
        if all > plan.count { output.print("  … and \(HumanText.count(all - plan.count)) more") }
    }
}

extension FieldChange {
    /// `title: "Old" → "New"`, cut to what a line holds.
    var summary: String {
        let same = zip(before ?? "", after ?? "").prefix { $0 == $1 }.count
        return "\(printable(name)): \(Self.short(before, same)) → \(Self.short(after, same))"
    }

    /// Where two long values begin alike, what differs is shown.
    private static func short(_ value: String?, _ same: Int) -> String {
        guard let value else { return "nothing" }
        guard value.count > 60 else { return printable(value) }
        let start = same > 40 ? same - 20 : 0
        let rest = value.dropFirst(start)
        let text = rest.count > 57 ? printable(String(rest.prefix(57))) + "…" : printable(String(rest))
        return start > 0 ? "…\(text)" : text
    }

    var json: JSONValue {
        [
            "field": .string(name), "before": before.map(JSONValue.string) ?? .null,
            "after": after.map(JSONValue.string) ?? .null,
        ]
    }
}

extension PlanItem {
    var json: JSONValue {
        [
            "action": .string(action.rawValue), "record": .string(subject), "label": .string(label),
            "changes": .array(changes.map(\.json)), "reason": reason.map(JSONValue.string) ?? .null,
        ]
    }
}

extension IntakeResult {
    func sentence(of what: String, dryRun: Bool) -> String {
        var parts: [String] = []
        func part(_ count: Int, _ what: String) {
            if count > 0 { parts.append("\(HumanText.count(count)) \(what)") }
        }
        part(added, "added")
        part(broughtBack, "brought back")
        part(updated - broughtBack, "updated")
        part(keptNewer, keptNewer == 1 ? "keeps newer values" : "keep newer values")
        part(kept, "also restored on other devices")
        part(quarantined, "put in quarantine")
        part(removed, "removed")
        part(unchanged, "unchanged")
        let stay = stayedDeleted == 1 ? "stays deleted" : "stay deleted"
        let since = what == "restore" ? "the backup was made" : "the source was written"
        part(stayedDeleted, "\(stay) (deleted after \(since))")
        part(protected - stayedDeleted, "protected")
        part(rejected, "rejected")
        part(conflicts, conflicts == 1 ? "conflict" : "conflicts")
        part(attachmentsAdded, attachmentsAdded == 1 ? "attachment added" : "attachments added")
        part(attachmentsMended, attachmentsMended == 1 ? "attachment set back" : "attachments set back")
        part(
            attachmentsLeftDeleted,
            attachmentsLeftDeleted == 1
                ? "attachment of deleted records left out" : "attachments of deleted records left out")
        part(attachmentsRemoved, attachmentsRemoved == 1 ? "attachment removed" : "attachments removed")
        part(linked, linked == 1 ? "record linked to a file" : "records linked to files")
        part(settingsChanged, settingsChanged == 1 ? "setting changed" : "settings changed")
        if parts.isEmpty {
            part(attachmentsUnchanged, attachmentsUnchanged == 1 ? "attachment unchanged" : "attachments unchanged")
            part(settingsUnchanged, settingsUnchanged == 1 ? "setting unchanged" : "settings unchanged")
        }
        if what == "restore", parts.isEmpty, read == 0, attachmentsUnchanged == 0, needsAttention {
            return dryRun ? "Dry run: nothing to restore, nothing written." : "Nothing was restored."
        }
        if parts.isEmpty { return dryRun ? "Dry run: nothing to \(what), nothing written." : "Nothing to \(what)." }
        let list = parts.joined(separator: ", ")
        return dryRun ? "Dry run: \(list), nothing written." : "\(list)."
    }

    func json(as what: String, dryRun: Bool) -> JSONValue {
        [
            "message_type": .string(what), "dryRun": .bool(dryRun), "read": .int(read), "added": .int(added),
            "updated": .int(updated), "unchanged": .int(unchanged), "protected": .int(protected),
            "keptNewer": .int(keptNewer),
            "conflicts": .int(conflicts), "rejected": .int(rejected), "removed": .int(removed), "kept": .int(kept),
            "quarantined": .int(quarantined), "linked": .int(linked),
            "attachments": [
                "added": .int(attachmentsAdded), "unchanged": .int(attachmentsUnchanged),
                "removed": .int(attachmentsRemoved), "mended": .int(attachmentsMended),
                "leftDeleted": .int(attachmentsLeftDeleted),
            ],
            "settings": .int(settingsChanged), "writes": .int(writes),
            "batch": batch.map { .int(Int($0)) } ?? .null, "findings": .array(findings.map(\.json)),
            "plan": .array(plan.map(\.json)),
        ]
    }
}

extension Dictionary<Kind, Int> {
    var json: JSONValue {
        .object(
            Kind.allCases.filter { $0 != .attachments && $0 != .settings }
                .map { .init(key: $0.rawValue, value: .int(self[$0] ?? 0)) })
    }
}

extension ExitStatus {
    /// 4 for damage, 3 for what needs attention.
    static func of(_ findings: [Finding]) -> ExitStatus {
        if findings.contains(where: { $0.severity == .damage || $0.severity == .error }) { return .damaged }
        return findings.contains { $0.severity == .warning } ? .incomplete : .done
    }
}
