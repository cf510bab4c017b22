import BackupKit

extension Command {
    static let importFiles = Command(
        "import", "Import files of apps and other tools", in: .moveData,
        discussion: """
            PATH is a .bib file, an event log (a .jsonl file or a folder of them), an imbib backup (folder or zip), \
            an exported library, or a folder that holds such things. Archives inside a folder are not opened, as they may \
            be several states of one library: name the one to import. PATH may be left out when --attachments names a \
            folder. The import is one step, which 'undo' takes back. Importing the same thing twice writes nothing the \
            second time.

            What the store has newer, or has deleted later, stays. It is counted as protected, and --verbose says why. \
            --overwrite imports it all the same.

            A field or an entry that was removed from a .bib file since its last import stays in the store. --mirror \
            removes what this file brought and no longer holds. What other files brought on this device stays, and what \
            was changed elsewhere. --dry-run shows the plan.

            Settings are imported only with --only settings. A missing store is made, but one that --store names only \
            with --create.

            The exit code is 3 when something was left out: a file that is not BibTeX, a linked file that was not found, \
            an attachment of more than 250 MB, which will never sync. --verbose lists each of them.
            """,
        options: [
            .store, .create,
            .value("attachments", "DIR", "Take every file below DIR as an attachment", .directory),
            .only, .overwrite,
            .flag("mirror", "Also remove what the .bib file brought before and no longer holds"), .dryRun,
        ],
        arguments: [Argument("PATH", "What to import", .file, .any)],
        examples: [
            Example("backup-tool import references.bib --attachments ~/Papers", "A bibliography and its PDFs"),
            Example("backup-tool import --mirror references.bib --dry-run", "See what a changed file would remove"),
            Example("backup-tool import ~/Ollie/*.jsonl", "A diary"),
            Example("backup-tool import imbib-backup-2026-03-08.zip --dry-run", "See what a backup would add"),
        ],
        reports: true,
        run: { call in
            var options = ImportOptions()
            options.attachments = call.value("attachments")
            options.kinds = call.kinds(else: options.kinds)
            options.namesKinds = !call.values("only").isEmpty
            options.dryRun = call.flag("dry-run")
            options.overwrite = call.flag("overwrite")
            options.mirror = call.flag("mirror")
            options.keepsPlan = call.output.isVerbose
            options.limits = try call.limits()
            options.progress = call.output.progress()
            let paths = call.arguments("PATH")
            if paths.isEmpty, options.attachments == nil { throw call.usage("PATH is missing") }
            let result = try call.withStore(dryRun: options.dryRun) { store in
                try Importer.run(paths, into: call.watched(store), options)
            }
            return call.report(result, as: "import", dryRun: options.dryRun)
        })
}
