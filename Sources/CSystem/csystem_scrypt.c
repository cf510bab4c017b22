#include "csystem_scrypt.h"
#include <stdint.h>

typedef uint32_t words __attribute__((vector_size(16), aligned(16)));

#define ROTATED(value, bits) (((value) << (bits)) | ((value) >> (32 - (bits))))
#define EACH for (int i = 0; i < count; i++)

/// scryptBlockMix of `from`, or of `from` XOR `mask` where there is one: 2r blocks of 16 words, for `count` tables in step.
/// Blocks of even number come out before the odd ones.
static inline __attribute__((always_inline)) void mix(
    const words *const from[2], const words *const mask[2], words *const to[2], size_t r, int masked, int count
) {
    words x[2][4];
    EACH for (size_t part = 0; part < 4; part++) {
        size_t place = 4 * (2 * r - 1) + part;
        x[i][part] = masked ? from[i][place] ^ mask[i][place] : from[i][place];
    }
    for (size_t block = 0; block < 2 * r; block++) {
        EACH for (size_t part = 0; part < 4; part++) {
            size_t place = 4 * block + part;
            x[i][part] ^= masked ? from[i][place] ^ mask[i][place] : from[i][place];
        }
        words a[2], b[2], c[2], d[2], sum[2];
        EACH a[i] = x[i][0], b[i] = x[i][1], c[i] = x[i][2], d[i] = x[i][3];
        // Salsa20/8: columns and rows in turn; between them the diagonals turn, and a row has become a column.
        for (int half = 0; half < 8; half++) {
            EACH sum[i] = a[i] + d[i];
            EACH b[i] ^= ROTATED(sum[i], 7);
            EACH sum[i] = b[i] + a[i];
            EACH c[i] ^= ROTATED(sum[i], 9);
            EACH sum[i] = c[i] + b[i];
            EACH d[i] ^= ROTATED(sum[i], 13);
            EACH sum[i] = d[i] + c[i];
            EACH a[i] ^= ROTATED(sum[i], 18);
            EACH {
                words turned = __builtin_shufflevector(b[i], b[i], 3, 0, 1, 2);
                b[i] = __builtin_shufflevector(d[i], d[i], 1, 2, 3, 0);
                c[i] = __builtin_shufflevector(c[i], c[i], 2, 3, 0, 1);
                d[i] = turned;
            }
        }
        EACH {
            words *target = to[i] + 4 * (block / 2 + (block & 1) * r);
            target[0] = x[i][0] += a[i];
            target[1] = x[i][1] += b[i];
            target[2] = x[i][2] += c[i];
            target[3] = x[i][3] += d[i];
        }
    }
}

static inline __attribute__((always_inline)) words *row(void *tables, int table, size_t r, size_t rows, size_t number) {
    return (words *)tables + 8 * r * ((size_t)table * (rows + 2) + number);
}

static inline __attribute__((always_inline)) void fill(
    void *tables, size_t r, size_t rows, size_t begin, size_t end, int count
) {
    for (size_t step = begin; step < end; step++) {
        const words *from[2];
        words *to[2];
        EACH from[i] = row(tables, i, r, rows, step), to[i] = row(tables, i, r, rows, step + 1);
        mix(from, from, to, r, 0, count);
    }
}

static inline __attribute__((always_inline)) void walk(
    void *tables, size_t r, size_t rows, size_t begin, size_t end, int count
) {
    for (size_t step = begin; step < end; step++) {
        const words *from[2], *mask[2];
        words *to[2];
        EACH {
            from[i] = row(tables, i, r, rows, rows + (step & 1));
            to[i] = row(tables, i, r, rows, rows + 1 - (step & 1));
            // The first word of the last block tells where to look.
            mask[i] = row(tables, i, r, rows, from[i][4 * (2 * r - 1)][0] & (rows - 1));
        }
        mix(from, mask, to, r, 1, count);
    }
}

// Once for every processor, and once for those that turn the words of a vector in one instruction instead of three, which the
// optimizer finds by itself.
#define LOOPS(name, attributes)                                                                                         \
    attributes static void fill_##name(void *tables, int count, size_t r, size_t rows, size_t begin, size_t end) {       \
        if (count == 2) fill(tables, r, rows, begin, end, 2);                                                            \
        else fill(tables, r, rows, begin, end, 1);                                                                       \
    }                                                                                                                   \
    attributes static void walk_##name(void *tables, int count, size_t r, size_t rows, size_t begin, size_t end) {       \
        if (count == 2) walk(tables, r, rows, begin, end, 2);                                                            \
        else walk(tables, r, rows, begin, end, 1);                                                                       \
    }

LOOPS(anywhere, )
#if defined(__x86_64__)
LOOPS(turning, __attribute__((target("avx512vl"))))
int csystem_scrypt_can_turn(void) { return __builtin_cpu_supports("avx512vl"); }
#else
LOOPS(turning, )
int csystem_scrypt_can_turn(void) { return 0; }
#endif

void csystem_scrypt_fill(void *tables, int count, int turning, size_t r, size_t rows, size_t begin, size_t end) {
    (turning ? fill_turning : fill_anywhere)(tables, count, r, rows, begin, end);
}

void csystem_scrypt_walk(void *tables, int count, int turning, size_t r, size_t rows, size_t begin, size_t end) {
    (turning ? walk_turning : walk_anywhere)(tables, count, r, rows, begin, end);
}
