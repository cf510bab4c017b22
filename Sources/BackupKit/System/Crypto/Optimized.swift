/// Whether the optimizer was at work: without it cryptography of our own is slower than libcrypto's, which then does it all.
#if DEBUG
    let isOptimized = false
#else
    let isOptimized = true
#endif
