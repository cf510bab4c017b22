import BackupKit

extension Command {
    static let vaultForget = Command(
        "forget", "Remove snapshots, by a policy or by name", in: .vault,
        discussion: """
            The policy is applied to each group of snapshots, as in restic. Snapshots dated in the future are kept and \
            not counted. The last snapshot that passed a drill is always kept. Data stays in the vault until 'vault \
            prune', or --prune.

            \(Invocation.vaultDiscussion)
            """,
        options: Option.vaultAccess + [.lockWait, .dryRun, .maxUnused] + keepOptions + [
            .value(
                "group-by", "WORDS", "Apply the policy to snapshots that share these (default: host,paths)", .anyText),
            .value("host", "NAME", "Only snapshots of this machine", repeated: true),
            .value("tag", "TAGS", "Only snapshots with all of these tags, separated by commas", .tags, repeated: true),
            .flag("prune", "Then delete unreferenced data"),
        ],
        arguments: [Argument("SNAPSHOT", "Remove these: the beginnings of their ids, or 'latest'", .text, .any)],
        examples: [
            Example(
                "backup-tool vault forget --keep-daily 14 --keep-monthly 12 --dry-run", "See what a policy would remove"
            ),
            Example("backup-tool vault forget 1a2b3c4d --prune", "Remove one snapshot and its data"),
        ],
        reports: true,
        run: { call in
            let policy = try call.retentionPolicy()
            let words = call.arguments("SNAPSHOT")
            guard words.isEmpty || policy.isEmpty else { throw call.usage("name snapshots or give a policy, not both") }
            guard !words.isEmpty || !policy.isEmpty else {
                throw call.usage("say what to keep, such as --keep-daily 14, or name snapshots to remove")
            }
            return try call.withVault(.removing) { vault in
                let plan = words.isEmpty ? try call.plan(policy, vault) : nil
                let ids = try plan?.removed.compactMap { SHA256Digest(hex: $0) } ?? call.resolve(words, vault)
                let all = try vault.backend.list(.snapshot).items.count
                if !call.flag("dry-run") { try vault.forget(ids) }
                call.report(plan, ids, of: all)
                let status = plan?.findings.isEmpty == false ? ExitStatus.incomplete : .done
                let options = try call.pruneOptions()
                // A rehearsal has removed nothing, and so there is nothing to prune.
                guard call.flag("prune"), !options.dryRun else { return status }
                let pruned = call.report(try vault.prune(options, progress: call.output.progress()), options)
                return pruned == .done ? status : pruned
            }
        })

    private static let keepOptions: [Option] = RetentionPolicy.names.map { name in
        let help =
            switch name {
            case "last": "Keep the last N snapshots, or 'unlimited'"
            case "within": "Keep every snapshot at most this much older than the newest, such as 1y6m or 14d"
            case "tag": "Keep those with all of these tags, with commas between"
            case _ where name.hasPrefix("within-"): "Keep one for each \(unit(name)) within this span, such as 1y6m"
            default: "Keep one for each of the last N \(unit(name))s that have any"
            }
        return .value(
            "keep-\(name)", name.hasPrefix("within") ? "SPAN" : name == "tag" ? "TAGS" : "N", help,
            // As with restic, an empty tag stands for snapshots without any. That only keeps more.
            name == "tag" ? .anyText : .text, repeated: name == "tag")
    }

    private static func unit(_ name: String) -> String {
        for (word, unit) in [("hourly", "hour"), ("daily", "day"), ("weekly", "week"), ("monthly", "month")]
        where name.hasSuffix(word) { return unit }
        return "year"
    }
}

extension Invocation {
    fileprivate func retentionPolicy() throws -> RetentionPolicy {
        var policy = RetentionPolicy()
        for name in RetentionPolicy.names {
            for text in values("keep-\(name)") { try policy.set(name, text) }
        }
        return policy
    }

    fileprivate func plan(_ policy: RetentionPolicy, _ vault: Vault) throws -> RetentionPlan {
        let hosts = values("host")
        let tags = values("tag").map { $0.split(separator: ",").map(String.init) }
        let all = try vault.everySnapshot()
        let chosen = all.filter { snapshot in
            (hosts.isEmpty || hosts.contains(snapshot.file.hostname))
                && (tags.isEmpty
                    || tags.contains { wanted in
                        wanted.allSatisfy(snapshot.file.tags.contains)
                    })
        }
        var retention = Retention(policy, now: Clock.system.now())
        if let words = value("group-by") { retention.grouping = try RetentionGrouping(words) }
        let items = chosen.compactMap(\.retentionItem).map { $0.uncountedWhenSuspect() }
        for id in try proved(items, now: retention.now) { retention.protected[id] = "the last that passed a drill" }
        var plan = try retention.plan(items)
        plan.findings += unmatched(hosts, tags, all, isChosen: !chosen.isEmpty)
        say(plan.findings)
        return plan
    }

    /// What was asked for and no snapshot has: it is mistyped.
    private func unmatched(
        _ hosts: [String], _ tags: [[String]], _ snapshots: [Snapshot], isChosen: Bool
    ) -> [Finding] {
        var missing = hosts.filter { host in !snapshots.contains { $0.file.hostname == host } }.map { "--host \($0)" }
        missing += tags.filter { words in !snapshots.contains { words.allSatisfy($0.file.tags.contains) } }
            .map { "--tag \($0.joined(separator: ","))" }
        if missing.isEmpty, !isChosen, !hosts.isEmpty, !tags.isEmpty { missing = ["--host and --tag"] }
        return missing.map {
            Finding(
                .entryMissing, .warning, $0, "no snapshot has this",
                remedy: "'backup-tool vault snapshots' lists the snapshots with their hosts and tags")
        }
    }

    /// Snapshots that were named, all of which may go.
    fileprivate func resolve(_ words: [String], _ vault: Vault) throws -> [SHA256Digest] {
        // No dates: they stand for the last snapshot until then, and so for one of another day. And a snapshot that cannot be
        // read has a name, too.
        let named = try words.map { $0 == "latest" ? try vault.resolve($0).id : try vault.resolve($0, .snapshot) }
        var seen: Set<SHA256Digest> = []
        let ids = named.filter { seen.insert($0).inserted }
        for id in ids { try vault.mustBeReadableOrDamaged(id) }
        let items = try vault.snapshots().snapshots.compactMap(\.retentionItem)
        let now = Clock.system.now()
        let proved = try proved(items, now: now)
        let going = items.filter { item in ids.contains { $0.hex == item.id } }
        if let item = going.first(where: { proved.contains($0.id) }) {
            let group = item.drillGroup(among: items).filter { !going.contains($0) }
            throw BackupError(
                .refused, "is the last that passed a drill, and is kept", at: "snapshot \(item.id.prefix(8))",
                remedy: Drill.replacing(item, among: group, of: vault.backend.location, now: now))
        }
        return ids
    }

    /// The last that passed a drill of each profile, which its tags tell.
    private func proved(_ items: [RetentionItem], now: Timestamp) throws -> Set<String> {
        let history = try DrillLog(DrillLog.path(in: environment.stateFolder(configuration()))).history()
        return history.provedOfEachGroup(items, now: now)
    }

    fileprivate func report(_ plan: RetentionPlan?, _ ids: [SHA256Digest], of all: Int) {
        let isRehearsal = flag("dry-run")
        if output.isJSON {
            let kept = plan?.groups.flatMap(\.keep) ?? []
            output.report([
                "message_type": "forget", "dryRun": .bool(isRehearsal),
                "removed": .array(ids.map { .string($0.hex) }),
                "kept": .array(
                    kept.map { ["id": .string($0.item.id), "reasons": .array($0.reasons.map { .string($0) })] }),
            ])
            return
        }
        for group in plan?.groups ?? [] {
            for kept in group.keep {
                output.print("keep    \(kept.item.id.prefix(8))  \(kept.reasons.joined(separator: ", "))")
            }
        }
        for id in ids { output.print("\(isRehearsal ? "would remove" : "remove")  \(id.hex.prefix(8))") }
        let rest = ids.count == all && all > 0 ? "; the vault \(isRehearsal ? "would hold" : "holds") no other" : ""
        output.note("\(HumanText.count(ids.count, "snapshot")) \(isRehearsal ? "would be " : "")removed\(rest)")
    }
}
