// Parses a BibTeX file five times and prints the shortest time: the parser alone, for `make bench`.
import BackupKit
import Glibc

guard CommandLine.arguments.count == 2 else {
    print("usage: bibtex-parse FILE")
    exit(64)
}
var bytes: [UInt8] = []
try FileHandle.openForReading(CommandLine.arguments[1]).forEachChunk { bytes += $0 }
var shortest = Int64.max
var entries = 0
var fields = 0
for _ in 0..<5 {
    var start = timespec()
    clock_gettime(CLOCK_MONOTONIC, &start)
    (entries, fields) = (0, 0)
    bytes.withUnsafeBytes { file in
        BibParser.parse(file) { block in
            guard block.kind == .entry else { return }
            entries += 1
            fields += block.fields.count
        }
    }
    var end = timespec()
    clock_gettime(CLOCK_MONOTONIC, &end)
    let passed = Int64(end.tv_sec - start.tv_sec) * 1_000_000_000 + Int64(end.tv_nsec - start.tv_nsec)
    shortest = min(shortest, passed)
}
print("{\"seconds\":\(Double(shortest) / 1e9),\"bytes\":\(bytes.count),\"entries\":\(entries),\"fields\":\(fields)}")
