#pragma once
#include <stddef.h>

#define CCURL_ERROR_SIZE 256

/// One HTTP request by libcurl (https://curl.se/libcurl/c/), which is loaded when it is first asked for: linked, it would
/// cost every start of the program several milliseconds.
typedef struct {
    const char *method;
    const char *url;
    /// `name: value` each; NULL ends the list.
    const char *const *headers;
    const void *body;
    size_t body_size;
    long timeout_ms;
    /// Called with pieces of the answer; anything but 0 ends the request.
    int (*take)(void *context, const void *bytes, size_t count);
    void *context;
} ccurl_request;

/// Returns the status of the answer, or -1 and a sentence in `error`.
long ccurl_perform(const ccurl_request *request, char error[CCURL_ERROR_SIZE]);
