#include "csystem_aes.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define WITH_INSTRUCTIONS __attribute__((target("vaes,avx2,aes")))

// This also asks whether the system saves the wide registers.
int csystem_aes_is_here(void) {
    return __builtin_cpu_supports("vaes") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("aes");
}

/// Each word of the next round key is the one before it and the one four before it.
WITH_INSTRUCTIONS static inline __m128i mix(__m128i key, __m128i word) {
    for (int i = 0; i < 3; i++) key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
    return _mm_xor_si128(key, word);
}

// The instruction wants its constant in the code.
#define EXPAND(number, constant)                                                                                        \
    even = mix(even, _mm_shuffle_epi32(_mm_aeskeygenassist_si128(odd, constant), 0xff));                                 \
    _mm_storeu_si128((__m128i *)aes->rounds[number], even);                                                              \
    if (number == 14) return;                                                                                            \
    odd = mix(odd, _mm_shuffle_epi32(_mm_aeskeygenassist_si128(even, 0), 0xaa));                                         \
    _mm_storeu_si128((__m128i *)aes->rounds[number + 1], odd);

WITH_INSTRUCTIONS void csystem_aes_expand(csystem_aes *aes, const void *key) {
    memcpy(aes->rounds, key, 32);
    __m128i even = _mm_loadu_si128((const __m128i *)aes->rounds[0]);
    __m128i odd = _mm_loadu_si128((const __m128i *)aes->rounds[1]);
    EXPAND(2, 0x01)
    EXPAND(4, 0x02)
    EXPAND(6, 0x04)
    EXPAND(8, 0x08)
    EXPAND(10, 0x10)
    EXPAND(12, 0x20)
    EXPAND(14, 0x40)
}

/// The key stream of one block.
WITH_INSTRUCTIONS static __m128i one(const csystem_aes *aes) {
    const __m128i big_endian = _mm_set_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f);
    __m128i counter = _mm_set_epi64x((long long)aes->high, (long long)aes->low);
    __m128i block = _mm_xor_si128(
        _mm_shuffle_epi8(counter, big_endian), _mm_loadu_si128((const __m128i *)aes->rounds[0]));
    for (int i = 1; i < 14; i++) block = _mm_aesenc_si128(block, _mm_loadu_si128((const __m128i *)aes->rounds[i]));
    return _mm_aesenclast_si128(block, _mm_loadu_si128((const __m128i *)aes->rounds[14]));
}

WITH_INSTRUCTIONS static inline __m256i round_key(const csystem_aes *aes, int number) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)aes->rounds[number]));
}

/// Sixteen blocks, two in a register. An instruction waits four cycles for the one before it, and two begin in each: eight
/// registers keep them busy.
WITH_INSTRUCTIONS static void sixteen(const csystem_aes *aes, const uint8_t *source, uint8_t *target) {
    const __m256i big_endian = _mm256_broadcastsi128_si256(_mm_set_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f));
    const __m256i two = _mm256_set_epi64x(0, 2, 0, 2);
    long long high = (long long)aes->high;
    __m256i counter = _mm256_set_epi64x(high, (long long)(aes->low + 1), high, (long long)aes->low);
    __m256i blocks[8], key = round_key(aes, 0);
#pragma clang loop unroll(full)
    for (int i = 0; i < 8; i++) {
        blocks[i] = _mm256_xor_si256(_mm256_shuffle_epi8(counter, big_endian), key);
        counter = _mm256_add_epi64(counter, two);
    }
    for (int number = 1; number < 14; number++) {
        key = round_key(aes, number);
#pragma clang loop unroll(full)
        for (int i = 0; i < 8; i++) blocks[i] = _mm256_aesenc_epi128(blocks[i], key);
    }
    key = round_key(aes, 14);
#pragma clang loop unroll(full)
    for (int i = 0; i < 8; i++) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(source + 32 * i));
        blocks[i] = _mm256_xor_si256(_mm256_aesenclast_epi128(blocks[i], key), bytes);
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < 8; i++) _mm256_storeu_si256((__m256i *)(target + 32 * i), blocks[i]);
}

WITH_INSTRUCTIONS void csystem_aes_crypt(csystem_aes *aes, const void *source, void *target, size_t count) {
    const uint8_t *from = source;
    uint8_t *to = target;
    while (count > 0) {
        size_t step = 256;
        // Only the lower half counts there.
        if (count >= step && aes->low < UINT64_MAX - 16) {
            sixteen(aes, from, to);
            aes->low += 16;
        } else {
            uint8_t stream[16];
            _mm_storeu_si128((__m128i *)stream, one(aes));
            step = count < 16 ? count : 16;
            for (size_t i = 0; i < step; i++) to[i] = from[i] ^ stream[i];
            aes->low += 1;
            if (aes->low == 0) aes->high += 1;
        }
        from += step;
        to += step;
        count -= step;
    }
}

#else

int csystem_aes_is_here(void) { return 0; }
void csystem_aes_expand(csystem_aes *aes, const void *key) {}
void csystem_aes_crypt(csystem_aes *aes, const void *source, void *target, size_t count) {}

#endif

void csystem_aes_begin(csystem_aes *aes, const void *counter) {
    uint64_t halves[2];
    memcpy(halves, counter, 16);
    aes->high = __builtin_bswap64(halves[0]);
    aes->low = __builtin_bswap64(halves[1]);
}
