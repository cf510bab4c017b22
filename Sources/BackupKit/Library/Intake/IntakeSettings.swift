/// Settings of the files that are read: one value each, whatever the order of the files.
extension Intake {
    struct NewSetting {
        let key: String
        let value: String
        let time: Timestamp
        /// The file that says so.
        let source: String
        /// Whether a file says so that had another value, or none, at its last import.
        var isNews = false
    }

    /// `writeSettings` writes it, unless another file has a newer value.
    func takeSetting(_ new: NewSetting) throws {
        touchedSettings.insert(ByteName(new.key))
        let other = newSettings.updateValue(new, forKey: ByteName(new.key))
        guard let other, try !Fields.same(other.value, new.value) else { return }
        let (kept, passed) = other.time > new.time ? (other, new) : (new, other)
        newSettings[ByteName(new.key)] = kept
        note(
            Finding(
                .leftOut, .warning, new.key,
                "has two values: the one of \(kept.source) was taken, the one of \(passed.source) was left out",
                remedy: TypedCommand.quoted("import --only settings --overwrite", [passed.source])
                    + " takes the other one"))
    }

    /// Must run inside the batch, after everything was read.
    func writeSettings() throws {
        for new in newSettings.values.sorted(by: { precedesBytewise($0.key, $1.key) }) {
            let known = try store.storedSetting(new.key)
            if try isOlder(new, than: known) {
                protect(new)
            } else if try store.putSetting(new.key, new.value, at: new.time) {
                noteChange(of: new.key, from: known?.value, to: new.value)
            } else {
                result.settingsUnchanged += 1
            }
        }
        newSettings = [:]
    }

    private func protect(_ setting: NewSetting) {
        result.protected += 1
        plan(.protect, setting.key, reason: Protection.newer.rawValue)
        guard setting.isNews else { return }
        noteOlder(setting.key, in: setting.source, "import --only settings --overwrite")
    }

    private func noteChange(of key: String, from before: String?, to after: String?) {
        result.settingsChanged += 1
        plan(
            before == nil ? .add : after == nil ? .remove : .update, key,
            changes: [FieldChange(name: "value", before: before, after: after)])
    }

    private func isOlder(_ new: NewSetting, than known: (value: String, time: Int64)?) throws -> Bool {
        guard !overwrite, !isEdit, let known else { return false }
        return try known.time > new.time.milliseconds
            && store.ifReadable { try !Fields.same(known.value, new.value) } ?? false
    }

    /// `--mode replace`: settings that the backup does not have go.
    func removeOtherSettings() throws {
        for setting in try store.settings() where !touchedSettings.contains(ByteName(setting.name)) {
            try store.removeSetting(setting.name)
            noteChange(of: setting.name, from: setting.value, to: nil)
        }
    }
}
