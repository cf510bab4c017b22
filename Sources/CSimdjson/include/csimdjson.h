// simdjson (https://github.com/simdjson/simdjson/blob/master/doc/dom.md) behind a C interface: the one thing that an event
// log needs of it, the members of an object. Its DOM parser chooses by itself what the CPU can do, and checks every byte.
#ifndef CSIMDJSON_H
#define CSIMDJSON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { CSIMDJSON_OTHER, CSIMDJSON_STRING, CSIMDJSON_NULL } csimdjson_kind;

// Key and text point to unescaped UTF-8 that lasts until the parser is used again; text is that of a string.
typedef struct {
    const char *key, *text;
    uint32_t key_length, text_length;
    csimdjson_kind kind;
} csimdjson_member;

typedef struct csimdjson_parser csimdjson_parser;

// NULL when there is no memory. One parser serves one thread.
csimdjson_parser *csimdjson_new(size_t depth);
void csimdjson_free(csimdjson_parser *parser);

// How many bytes behind the text must be readable, whatever they hold.
size_t csimdjson_padding(void);

// Finds the members of an object and returns how many there are; -1 when the text is no JSON, or no object, or has
// anything that simdjson will not read, or a name beyond ASCII or twice, or more than `limit` members: then the strict
// scanner decides.
int csimdjson_members(csimdjson_parser *parser, const char *text, size_t length, csimdjson_member *members, int limit);

#ifdef __cplusplus
}
#endif
#endif
