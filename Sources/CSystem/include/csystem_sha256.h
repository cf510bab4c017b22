#pragma once
#include <stddef.h>
#include <stdint.h>

// SHA-256 of two texts at once (FIPS 180-4). A round waits for the one before it, so the instructions that processors have
// for it are idle half of the time; with the rounds of another text in between they are not. libcrypto does not offer that.

/// One text on its way.
typedef struct {
    uint32_t words[8];
    uint64_t count;
    /// What does not fill a block yet.
    uint8_t rest[64];
} csystem_sha256;

/// Whether this processor has the instructions; without them the rest of this file MUST NOT be called.
int csystem_sha256_is_here(void);

void csystem_sha256_begin(csystem_sha256 *_Nonnull text);

/// Goes on with both texts, which may be different parts of the same memory.
void csystem_sha256_update(
    csystem_sha256 *_Nonnull first, const void *_Nullable first_bytes, size_t first_count,
    csystem_sha256 *_Nonnull second, const void *_Nullable second_bytes, size_t second_count);

/// Writes the 32 bytes of the digest.
void csystem_sha256_finish(csystem_sha256 *_Nonnull text, void *_Nonnull digest);
