import BackupKit
import Glibc
import Testing

/// Other people's tools as judges: they must read what we write, and we what they write.
@Suite struct ArchivePeerTests {
    private static let commands: [(CarrierFormat, tool: String, command: String)] = [
        (.tarZstandard, "tar", "tar --zstd -xf a -C out"), (.tarZstandard, "bsdtar", "bsdtar -xf a -C out"),
        (.tarZstandard, "zstd", "zstd -tq a && zstd -dqc a | tar -xf - -C out"),
        (.tarGzip, "tar", "tar -xzf a -C out"), (.tarGzip, "gzip", "gzip -t < a && gzip -dc < a | tar -xf - -C out"),
        (.tarXZ, "xz", "xz -t < a && tar -xJf a -C out"), (.tar, "tar", "tar -xf a -C out"),
        (.tar, "bsdtar", "bsdtar -xf a -C out"),
        (.tar, "python3", "python3 -c \"import tarfile; tarfile.open('a').extractall('out')\""),
        (.zip, "unzip", "unzip -tq a && unzip -qq a -d out"), (.zip, "bsdtar", "bsdtar -xf a -C out"),
        (.zip, "python3", "python3 -c \"import zipfile; zipfile.ZipFile('a').extractall('out')\""),
    ]

    @Test(arguments: commands.indices)
    func theyUnpackWhatWeWrite(_ number: Int) throws {
        let (format, tool, command) = Self.commands[number]
        guard hasTool(tool) else { return }
        try withScratch { folder in
            // bsdtar turns backslashes in zip names around, and composes decomposed letters.
            let pieces = CarrierConformanceTests.awkwardPieces().filter {
                !$0.path.contains("\\") && !(tool == "bsdtar" && $0.path.hasPrefix("nfd"))
            }
            try writeCarrier("\(folder)/a", format, pieces)
            try Directory.create("\(folder)/out")
            let run = try shell("cd \(folder) && TZ=UTC \(command)")
            #expect(run.status == 0, "\(command): \(String(decoding: run.output, as: UTF8.self))")
            for piece in pieces {
                #expect(try readFile("\(folder)/out/\(piece.path)") == piece.bytes, "\(command): \(piece.path)")
            }
        }
    }

    private static let packers: [(tool: String, command: String)] = [
        ("tar", "tar -C in -cf a ."), ("tar", "tar --format=pax -C in -cf a ."),
        ("tar", "tar --format=gnu -C in -czf a ."),
        ("tar", "cd in && tar -cJf ../a -- * .h*"), ("zstd", "tar -C in -c . | zstd -q > a"),
        ("bsdtar", "bsdtar -C in -cf a ."), ("bsdtar", "bsdtar -C in -a -cf b.zip . && mv b.zip a"),
        ("zip", "cd in && zip -qr ../a.zip . && mv ../a.zip ../a"),
        (
            "python3",
            "python3 -c \"import shutil; shutil.make_archive('x', 'zip', 'in'); shutil.make_archive('y', 'gztar', 'in')\" && mv x.zip a"
        ),
    ]

    @Test(arguments: packers.indices)
    func weReadWhatTheyPack(_ number: Int) throws {
        let (tool, command) = Self.packers[number]
        guard hasTool(tool) else { return }
        try withScratch { folder in
            let pieces = CarrierConformanceTests.awkwardPieces().filter { !$0.path.contains("\\") }
            try writeCarrier("\(folder)/in", .directory, pieces)
            let run = try shell("cd \(folder) && \(command)")
            #expect(run.status == 0, "\(command): \(String(decoding: run.output, as: UTF8.self))")
            let visited = try visitAll("\(folder)/a")
            #expect(visited.isClean, "\(command): \(visited.findings) \(visited.damaged)")
            for piece in pieces { #expect(visited.pieces[piece.path] == piece.bytes, "\(command): \(piece.path)") }
        }
    }
}
