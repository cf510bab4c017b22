/// The candidates that look like what was meant by `word`: those at the smallest edit distance, if that is small
/// for the word's length, else those that begin with it. At most three, in the order given.
public func nearest(to word: String, among candidates: [String]) -> [String] {
    // Longer words are pasted, not typed; nothing this tool knows is longer.
    guard !word.isEmpty, word.utf8.count <= 64 else { return [] }
    let allowed = max(1, word.utf8.count / 4)
    let distances = candidates.map { editDistance(word, $0) }
    if let best = distances.min(), best <= allowed {
        return Array(zip(candidates, distances).filter { $0.1 == best }.map(\.0).prefix(3))
    }
    return Array(candidates.filter { $0.hasPrefix(word) }.prefix(3))
}

/// "did you mean 'export'?", or nil when nothing is near.
public func didYouMean(_ word: String, among candidates: [String], after prefix: String = "") -> String? {
    didYouMean(nearest(to: word, among: candidates).map { prefix + $0 })
}

/// The same for words that are chosen already.
public func didYouMean(_ words: [String]) -> String? {
    let near = words.map { "'\($0)'" }
    guard let last = near.last else { return nil }
    let others = near.dropLast()
    return "did you mean \(others.isEmpty ? last : others.joined(separator: ", ") + " or " + last)?"
}

/// Insertions, deletions, replacements and swaps of neighbours between the two (optimal string alignment).
func editDistance(_ left: String, _ right: String) -> Int {
    let a = Array(left.utf8)
    let b = Array(right.utf8)
    var beforeLast = [Int](repeating: 0, count: b.count + 1)
    var last = Array(0...b.count)
    var row = last
    for i in a.indices {
        row[0] = i + 1
        for j in b.indices {
            let replaced = last[j] + (a[i] == b[j] ? 0 : 1)
            row[j + 1] = min(replaced, last[j + 1] + 1, row[j] + 1)
            if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
                row[j + 1] = min(row[j + 1], beforeLast[j - 1] + 1)
            }
        }
        (beforeLast, last, row) = (last, row, beforeLast)
    }
    return last[b.count]
}
