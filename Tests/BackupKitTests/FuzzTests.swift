import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// What fuzzing found stays found, and a little of it is tried each time.
@Suite(.serialized) struct FuzzTests {
    private static let finds = "\(projectFolder)/Tests/Finds"

    @Test(arguments: FuzzTarget.allCases)
    func whatWasFoundOnceEndsWell(_ target: FuzzTarget) throws {
        let folder = "\(Self.finds)/\(target.rawValue)"
        guard try FileStatus.ofName(folder) != nil else { return }
        for name in try Directory.names(in: folder) { try target.run(try readFile("\(folder)/\(name)")) }
    }

    @Test(arguments: FuzzTarget.allCases)
    func damagedInputsEndWell(_ target: FuzzTarget) throws {
        var random = SeededGenerator(seed: testSeed())
        let isSlow = target == .store || target == .hub
        let times = (isTorture ? 50 : 1) * (isSlow ? 3 : 150)
        let seeds = try target.seeds()
        #expect(!seeds.isEmpty)
        for seed in seeds { try target.run(seed) }
        for _ in 0..<times {
            countRounds()
            try target.run(FuzzTarget.mutated(seeds[random.below(seeds.count)], &random))
        }
    }
}
