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
        for (number, seed) in try target.seeds().enumerated() {
            guard let file = fopen("\(folder)/seed\(number)", "w") else { continue }
            fwrite(seed, 1, seed.count, file)
            fclose(file)
        }
    } catch {
        print("no seeds: \(error)")
        exit(1)
    }
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

@_silgen_name("LLVMFuzzerRunDriver")
private func runFuzzer(
    _ count: UnsafeMutablePointer<Int32>,
    _ words: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
) -> Int32

/// The package manager makes this the `main` of a program called `fuzz`.
@_cdecl("fuzz_main")
public func main(_ count: Int32, _ words: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Int32 {
    var (count, words) = (count, words)
    return runFuzzer(&count, &words) { testOneInput($0, $1) }
}
