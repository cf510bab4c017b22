#pragma once
#include <stddef.h>
#include <stdint.h>

// The inner loop of scrypt (RFC 7914 §4), in C because Swift has no way yet to turn the words of a vector that its
// optimizer leaves as one instruction.

typedef uint32_t csystem_words __attribute__((vector_size(16), aligned(16)));

#define CSYSTEM_ROTATED(words, bits) (((words) << (bits)) | ((words) >> (32 - (bits))))

/// scryptBlockMix of `from`, or of `from` XOR `mask` where that is not NULL: 2r blocks of 16 words, aligned to 16 bytes. Blocks of even number
/// come out before the odd ones. A block's words stand as the diagonals of their square, (0, 5, 10, 15), (4, 9, 14, 3),
/// (8, 13, 2, 7) and (12, 1, 6, 11), so that one instruction does a step of all four columns.
static inline void csystem_scrypt_mix(
    const void *_Nonnull from, const void *_Nullable mask, void *_Nonnull to, size_t r
) {
    const csystem_words *input = from, *other = mask;
    csystem_words *output = to;
    csystem_words x[4];
    for (size_t part = 0; part < 4; part++) {
        size_t place = 4 * (2 * r - 1) + part;
        x[part] = other ? input[place] ^ other[place] : input[place];
    }
    for (size_t block = 0; block < 2 * r; block++) {
        for (size_t part = 0; part < 4; part++) {
            size_t place = 4 * block + part;
            x[part] ^= other ? input[place] ^ other[place] : input[place];
        }
        csystem_words a = x[0], b = x[1], c = x[2], d = x[3];
        // Salsa20/8: columns and rows in turn; between them the diagonals turn, and a row has become a column.
        for (int half = 0; half < 8; half++) {
            csystem_words sum = a + d;
            b ^= CSYSTEM_ROTATED(sum, 7);
            sum = b + a;
            c ^= CSYSTEM_ROTATED(sum, 9);
            sum = c + b;
            d ^= CSYSTEM_ROTATED(sum, 13);
            sum = d + c;
            a ^= CSYSTEM_ROTATED(sum, 18);
            csystem_words turned = __builtin_shufflevector(b, b, 3, 0, 1, 2);
            b = __builtin_shufflevector(d, d, 1, 2, 3, 0);
            c = __builtin_shufflevector(c, c, 2, 3, 0, 1);
            d = turned;
        }
        csystem_words *target = output + 4 * (block / 2 + (block & 1) * r);
        target[0] = x[0] += a;
        target[1] = x[1] += b;
        target[2] = x[2] += c;
        target[3] = x[3] += d;
    }
}
