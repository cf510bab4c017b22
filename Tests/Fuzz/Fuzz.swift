import Glibc
import TestSupport

// What libFuzzer calls (https://llvm.org/docs/LibFuzzer.html). `scripts/fuzz.sh` builds and runs this; FUZZ_TARGET names the
// reader. The normal build does not know of it.

private let target = FuzzTarget(rawValue: getenv("FUZZ_TARGET").map { String(cString: $0) } ?? "") ?? .bib

/// With FUZZ_SEEDS the sound inputs are written to that folder, for the fuzzer to begin with.
@_cdecl("LLVMFuzzerInitialize")
public func initialize(
    _ count: UnsafeMutablePointer<Int32>,
    _ words: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>>>
) -> Int32 {
    guard let folder = getenv("FUZZ_SEEDS").map({ String(cString: $0) }) else { return 0 }
    do {
        for (number, seed) in try target.seeds().enumerated() { try? writeFile("\(folder)/seed\(number)", seed) }
    } catch { print("no seeds: \(error)") }
    return 0
}

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    do { try target.run(Array(UnsafeBufferPointer(start: start, count: count))) } catch {
        print("not an error of ours: \(error)")
        abort()
    }
    return 0
}
