#pragma once
#include <stddef.h>
#include <stdint.h>

// Where restic's chunker may cut: Rabin's fingerprint of the last 64 bytes, by instructions that multiply each byte of a
// register with a matrix over GF(2). Taking a byte in, taking one out and reducing are such products, so that a step needs
// no table, and is done for 64 places at once.
//
// A fingerprint of 53 bits, shifted by 3, is seven bytes of which each has a register. A place has the same byte of all of
// them, and the next byte is a shift by one register. Its lowest 20 bits are then 3 to 22.

enum { csystem_cut_matrices = 16 };

/// Whether this processor has the instructions; without them the rest of this file MUST NOT be called.
int csystem_cut_is_here(void);

/// Looks through 64 neighbouring stretches of `stretch` bytes, a multiple of 64, with 64 bytes before the first one.
/// Returns the first place behind whose byte a chunk may end, or -1.
///
/// The `matrices` give the bytes, lowest first, of a product that is shifted by 3: seven of what leaves at the top, which is
/// to be reduced; seven of the byte that leaves the window; two of the byte that enters it.
ptrdiff_t csystem_cut_find(const uint64_t *_Nonnull matrices, const void *_Nonnull bytes, size_t stretch);
