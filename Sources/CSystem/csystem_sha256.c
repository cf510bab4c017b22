#include "csystem_sha256.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

int csystem_sha256_is_here(void) {
    unsigned a, b, c, d;
    // Bit 29: the SHA instructions; what else is used here is older than they are.
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
}

static const uint32_t constants[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

#define WITH_INSTRUCTIONS __attribute__((target("sha,sse4.1,ssse3"), always_inline))

/// The state as the instructions want it, and the sixteen words that the next rounds need.
typedef struct {
    __m128i abef, cdgh, words[4];
} lane;

WITH_INSTRUCTIONS static inline void load(lane *lane, const uint32_t words[8]) {
    lane->abef = _mm_set_epi32((int)words[0], (int)words[1], (int)words[4], (int)words[5]);
    lane->cdgh = _mm_set_epi32((int)words[2], (int)words[3], (int)words[6], (int)words[7]);
}

WITH_INSTRUCTIONS static inline void store(const lane *lane, uint32_t words[8]) {
    uint32_t abef[4], cdgh[4];
    _mm_storeu_si128((__m128i *)abef, lane->abef);
    _mm_storeu_si128((__m128i *)cdgh, lane->cdgh);
    for (int i = 0; i < 2; i++) {
        words[i] = abef[3 - i];
        words[i + 4] = abef[1 - i];
        words[i + 2] = cdgh[3 - i];
        words[i + 6] = cdgh[1 - i];
    }
}

WITH_INSTRUCTIONS static inline void read_block(lane *lane, const uint8_t *block) {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    for (int i = 0; i < 4; i++)
        lane->words[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(block + 16 * i)), big_endian);
}

/// Four rounds, and the words that take the place of those that were used.
WITH_INSTRUCTIONS static inline void four_rounds(lane *lane, int group) {
    __m128i *w = lane->words;
    __m128i sum = _mm_add_epi32(w[group & 3], _mm_load_si128((const __m128i *)(constants + 4 * group)));
    lane->cdgh = _mm_sha256rnds2_epu32(lane->cdgh, lane->abef, sum);
    lane->abef = _mm_sha256rnds2_epu32(lane->abef, lane->cdgh, _mm_shuffle_epi32(sum, 0x0e));
    if (group >= 12) return;
    __m128i next = _mm_sha256msg1_epu32(w[group & 3], w[(group + 1) & 3]);
    next = _mm_add_epi32(next, _mm_alignr_epi8(w[(group + 3) & 3], w[(group + 2) & 3], 4));
    w[group & 3] = _mm_sha256msg2_epu32(next, w[(group + 3) & 3]);
}

__attribute__((target("sha,sse4.1,ssse3"))) static void one(uint32_t words[8], const uint8_t *bytes, size_t blocks) {
    lane a;
    load(&a, words);
    for (; blocks > 0; blocks--, bytes += 64) {
        __m128i abef = a.abef, cdgh = a.cdgh;
        read_block(&a, bytes);
#pragma clang loop unroll(full)
        for (int group = 0; group < 16; group++) four_rounds(&a, group);
        a.abef = _mm_add_epi32(a.abef, abef);
        a.cdgh = _mm_add_epi32(a.cdgh, cdgh);
    }
    store(&a, words);
}

__attribute__((target("sha,sse4.1,ssse3"))) static void two(
    uint32_t first[8], const uint8_t *first_bytes, uint32_t second[8], const uint8_t *second_bytes, size_t blocks) {
    lane a, b;
    load(&a, first);
    load(&b, second);
    for (; blocks > 0; blocks--, first_bytes += 64, second_bytes += 64) {
        __m128i abef = a.abef, cdgh = a.cdgh, other_abef = b.abef, other_cdgh = b.cdgh;
        read_block(&a, first_bytes);
        read_block(&b, second_bytes);
#pragma clang loop unroll(full)
        for (int group = 0; group < 16; group++) {
            four_rounds(&a, group);
            four_rounds(&b, group);
        }
        a.abef = _mm_add_epi32(a.abef, abef);
        a.cdgh = _mm_add_epi32(a.cdgh, cdgh);
        b.abef = _mm_add_epi32(b.abef, other_abef);
        b.cdgh = _mm_add_epi32(b.cdgh, other_cdgh);
    }
    store(&a, first);
    store(&b, second);
}

#else

int csystem_sha256_is_here(void) { return 0; }
static void one(uint32_t *words, const uint8_t *bytes, size_t blocks) {}
static void two(uint32_t *a, const uint8_t *b, uint32_t *c, const uint8_t *d, size_t blocks) {}

#endif

void csystem_sha256_begin(csystem_sha256 *text) {
    static const uint32_t start[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    };
    memcpy(text->words, start, sizeof start);
    text->count = 0;
}

/// Fills the block that was begun, and returns how many bytes that took.
static size_t complete_block(csystem_sha256 *text, const uint8_t *bytes, size_t count) {
    size_t have = text->count % 64;
    if (have == 0) return 0;
    size_t more = count < 64 - have ? count : 64 - have;
    memcpy(text->rest + have, bytes, more);
    text->count += more;
    if (have + more == 64) one(text->words, text->rest, 1);
    return more;
}

/// The whole blocks that the other text has no partner for, and what is left of a block.
static void go_on(csystem_sha256 *text, const uint8_t *bytes, size_t count) {
    if (count == 0) return;
    one(text->words, bytes, count / 64);
    memcpy(text->rest, bytes + count / 64 * 64, count % 64);
    text->count += count;
}

void csystem_sha256_update(
    csystem_sha256 *first, const void *first_bytes, size_t first_count, csystem_sha256 *second,
    const void *second_bytes, size_t second_count) {
    const uint8_t *a = first_bytes, *b = second_bytes;
    size_t begun = first_count ? complete_block(first, a, first_count) : 0;
    size_t other_begun = second_count ? complete_block(second, b, second_count) : 0;
    // Where a block is still not full, nothing is left.
    a = a ? a + begun : a;
    b = b ? b + other_begun : b;
    first_count -= begun;
    second_count -= other_begun;
    size_t blocks = (first_count < second_count ? first_count : second_count) / 64;
    if (blocks > 0) {
        two(first->words, a, second->words, b, blocks);
        first->count += blocks * 64;
        second->count += blocks * 64;
    }
    go_on(first, a + blocks * 64, first_count - blocks * 64);
    go_on(second, b + blocks * 64, second_count - blocks * 64);
}

void csystem_sha256_finish(csystem_sha256 *text, void *digest) {
    uint8_t end[128] = {0};
    size_t have = text->count % 64, size = have < 56 ? 64 : 128;
    memcpy(end, text->rest, have);
    end[have] = 0x80;
    uint64_t bits = __builtin_bswap64(text->count * 8);
    memcpy(end + size - 8, &bits, 8);
    one(text->words, end, size / 64);
    uint8_t *target = digest;
    for (int i = 0; i < 8; i++) {
        uint32_t word = __builtin_bswap32(text->words[i]);
        memcpy(target + 4 * i, &word, 4);
    }
}
