#include "csimdjson.h"

#include <cstring>
#include <new>
#include <simdjson.h>

using namespace simdjson;

struct csimdjson_parser {
    dom::parser parser;
};

csimdjson_parser *csimdjson_new(size_t depth) {
    csimdjson_parser *parser = new (std::nothrow) csimdjson_parser;
    if (parser && parser->parser.allocate(1 << 16, depth)) {
        delete parser;
        return nullptr;
    }
    return parser;
}
void csimdjson_free(csimdjson_parser *parser) { delete parser; }
size_t csimdjson_padding(void) { return SIMDJSON_PADDING; }

// Names beyond ASCII can be equal without being the same bytes.
static bool is_new_key(const csimdjson_member *members, int count) {
    const csimdjson_member *member = members + count;
    for (uint32_t index = 0; index < member->key_length; index++) {
        if (static_cast<unsigned char>(member->key[index]) >= 0x80) return false;
    }
    for (int other = 0; other < count; other++) {
        if (members[other].key_length == member->key_length &&
            memcmp(members[other].key, member->key, member->key_length) == 0) {
            return false;
        }
    }
    return true;
}

// No exception may leave C++, so what throws, throws here.
int csimdjson_members(csimdjson_parser *parser, const char *text, size_t length, csimdjson_member *members, int limit) try {
    dom::object object;
    if (parser->parser.parse(text, length, false).get(object)) return -1;
    int count = 0;
    for (dom::key_value_pair field : object) {
        if (count == limit) return -1;
        csimdjson_member *member = members + count;
        member->key = field.key.data();
        member->key_length = static_cast<uint32_t>(field.key.size());
        if (!is_new_key(members, count)) return -1;
        member->kind = CSIMDJSON_OTHER;
        if (field.value.is_string()) {
            std::string_view string;
            if (field.value.get_string().get(string)) return -1;
            member->kind = CSIMDJSON_STRING;
            member->text = string.data();
            member->text_length = static_cast<uint32_t>(string.size());
        } else if (field.value.is_null()) {
            member->kind = CSIMDJSON_NULL;
        }
        count += 1;
    }
    return count;
} catch (...) {
    return -1;
}
