#pragma once
#include <stddef.h>

// The two loops of scryptROMix (RFC 7914 §5), in C because Swift has no way yet to turn the words of a vector that its
// optimizer leaves as one instruction.
//
// `tables` are one or two, each of `rows` + 2 rows of 128 * r bytes, one behind the other and aligned to 16 bytes. In two,
// one's instructions fill the time in which the other's wait for their results. The words of each block of 64 bytes stand as
// the diagonals of their square, (0, 5, 10, 15), (4, 9, 14, 3), (8, 13, 2, 7) and (12, 1, 6, 11), so that one instruction
// does a step of all four columns.

/// Whether this processor turns the words of a vector in one instruction; else `turning` MUST be 0.
int csystem_scrypt_can_turn(void);

/// Makes each row from the one before it, `begin` + 1 to `end`.
void csystem_scrypt_fill(
    void *_Nonnull tables, int count, int turning, size_t r, size_t rows, size_t begin, size_t end);

/// Takes the steps `begin` to `end` - 1 through the filled tables. The state is the row behind the last in even steps, and
/// the one after it in odd ones.
void csystem_scrypt_walk(
    void *_Nonnull tables, int count, int turning, size_t r, size_t rows, size_t begin, size_t end);
