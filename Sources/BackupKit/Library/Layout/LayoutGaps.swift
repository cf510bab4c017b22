/// What a backup does not hold, however sound it is: whoever reads it is told.
extension OpenedLayout {
    func gaps(_ kinds: Set<Kind>) -> [Finding] {
        guard case .own(let manifest) = manifest else { return [] }
        return manifest.omitted.compactMap { omission in
            if !kinds.contains(.attachments), Layout.role(of: omission.path) == .attachment { return nil }
            if let held = omission.findingOfHeld { return held }
            return Finding(
                .leftOut, .warning, omission.path, "was left out when this backup was made: \(omission.reason)")
        }
    }
}
