#include "csystem_cut.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define WITH_INSTRUCTIONS __attribute__((target("avx512f,avx512bw,gfni")))

// This also asks whether the system saves the wide registers.
int csystem_cut_is_here(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("gfni");
}

/// Sixteen bytes of each of the 64 stretches become sixteen registers with a byte of each.
WITH_INSTRUCTIONS static void transpose(const uint8_t *bytes, size_t stretch, __m512i *columns) {
    __m512i rows[16], next[16];
#pragma clang loop unroll(full)
    for (int i = 0; i < 16; i++) {
        // Each quarter of a register has every sixteenth stretch: as many of these pointers' 16 bytes as a stretch has bytes.
        const __m128i *row = (const __m128i *)(bytes + i * stretch);
        rows[i] = _mm512_castsi128_si512(_mm_loadu_si128(row));
        rows[i] = _mm512_inserti32x4(rows[i], _mm_loadu_si128(row + stretch), 1);
        rows[i] = _mm512_inserti32x4(rows[i], _mm_loadu_si128(row + 2 * stretch), 2);
        rows[i] = _mm512_inserti32x4(rows[i], _mm_loadu_si128(row + 3 * stretch), 3);
    }
    // To interleave the first half of 256 bytes with the second one turns the eight bits of their numbers by one. After four
    // such turns the row's four bits and the column's have changed places.
#pragma clang loop unroll(full)
    for (int turn = 0; turn < 4; turn++) {
#pragma clang loop unroll(full)
        for (int i = 0; i < 8; i++) {
            next[2 * i] = _mm512_unpacklo_epi8(rows[i], rows[i + 8]);
            next[2 * i + 1] = _mm512_unpackhi_epi8(rows[i], rows[i + 8]);
        }
#pragma clang loop unroll(full)
        for (int i = 0; i < 16; i++) rows[i] = next[i];
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < 16; i++) columns[i] = rows[i];
}

/// The product of each byte and a matrix.
#define TIMES(bytes, matrix) _mm512_gf2p8affine_epi64_epi8(bytes, matrix, 0)
#define SUM(one, two, three) _mm512_ternarylogic_epi64(one, two, three, 0x96)

/// Takes a byte into each of the 64 windows, and one out. A bit is set for each fingerprint whose low bits are 0.
WITH_INSTRUCTIONS static inline uint64_t slide(__m512i *print, const __m512i *matrices, __m512i fresh, __m512i old) {
    const __m512i *reduce = matrices, *leave = matrices + 7, *enter = matrices + 14;
    __m512i top = print[6];
#pragma clang loop unroll(full)
    for (int k = 6; k > 0; k--) print[k] = SUM(print[k - 1], TIMES(top, reduce[k]), TIMES(old, leave[k]));
    print[0] = SUM(TIMES(top, reduce[0]), TIMES(old, leave[0]), TIMES(fresh, enter[0]));
    print[1] = _mm512_xor_si512(print[1], TIMES(fresh, enter[1]));
    // one | two | (three & low): what is below bit 3 is 0 anyway.
    const __m512i low = _mm512_set1_epi8(0x7f);
    __m512i bits = _mm512_ternarylogic_epi64(_mm512_or_si512(print[0], print[1]), print[2], low, 0xf8);
    return _mm512_testn_epi8_mask(bits, bits);
}

WITH_INSTRUCTIONS ptrdiff_t csystem_cut_find(const uint64_t *words, const void *bytes, size_t stretch) {
    __m512i matrices[csystem_cut_matrices], print[7] = {0}, tiles[2][64] = {0};
    for (int i = 0; i < csystem_cut_matrices; i++) matrices[i] = _mm512_set1_epi64((long long)words[i]);
    // Of each stretch: whether there was a place in it, and the first one.
    uint64_t hit = 0;
    size_t first[64];
    // The 64 bytes before a stretch fill its window, in which there was nothing.
    const uint8_t *place = (const uint8_t *)bytes - 64;
    for (size_t tile = 0; tile <= stretch / 64 && !(hit & 1); tile++) {
        const __m512i *old = tiles[tile % 2];
        __m512i *fresh = tiles[(tile + 1) % 2];
        for (size_t i = 0; i < 64; i += 16) transpose(place + 64 * tile + i, stretch, fresh + i);
        for (size_t i = 0; i < 64; i++) {
            uint64_t found = slide(print, matrices, fresh[i], old[i]);
            if (found == 0 || tile == 0) continue;
            for (found &= ~hit; found != 0; found &= found - 1) {
                hit |= found & -found;
                first[__builtin_ctzll(found)] = 64 * (tile - 1) + i;
            }
        }
    }
    if (hit == 0) return -1;
    int number = __builtin_ctzll(hit);
    return (ptrdiff_t)(number * stretch + first[number]);
}

#else

int csystem_cut_is_here(void) { return 0; }
ptrdiff_t csystem_cut_find(const uint64_t *words, const void *bytes, size_t stretch) { return -1; }

#endif
