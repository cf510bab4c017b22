#pragma once
#include <stddef.h>
#include <stdint.h>

// AES-256 in counter mode (FIPS 197; NIST SP 800-38A), sixteen blocks at a time by instructions that take two in one
// register. Debian's libcrypto takes one, which is half as fast.

/// A key, expanded, and the counter.
typedef struct {
    uint8_t rounds[15][16];
    uint64_t high, low;
} csystem_aes;

/// Whether this processor has the instructions; without them the rest of this file MUST NOT be called.
int csystem_aes_is_here(void);

/// Expands the 32 bytes of a key.
void csystem_aes_expand(csystem_aes *_Nonnull aes, const void *_Nonnull key);

/// Sets the counter: 16 bytes, the most significant first.
void csystem_aes_begin(csystem_aes *_Nonnull aes, const void *_Nonnull counter);

/// Encrypts or decrypts the next bytes; `target` may be `source`. Only the last call may have a part of a block.
void csystem_aes_crypt(csystem_aes *_Nonnull aes, const void *_Nullable source, void *_Nullable target, size_t count);
