#include "ccurl.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

// What a call to the header's macros of the same name would wrap.
#undef curl_easy_setopt
#undef curl_easy_getinfo

static struct {
    CURLcode (*global_init)(long);
    CURL *(*init)(void);
    CURLcode (*setopt)(CURL *, CURLoption, ...);
    CURLcode (*getinfo)(CURL *, CURLINFO, ...);
    CURLcode (*perform)(CURL *);
    void (*cleanup)(CURL *);
    const char *(*strerror)(CURLcode);
    struct curl_slist *(*append)(struct curl_slist *, const char *);
    void (*free_all)(struct curl_slist *);
} curl;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int is_loaded = 0;

static void load(void) {
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    const struct {
        void **place;
        const char *name;
    } symbols[] = {
        {(void **)&curl.global_init, "curl_global_init"},    {(void **)&curl.init, "curl_easy_init"},
        {(void **)&curl.setopt, "curl_easy_setopt"},         {(void **)&curl.getinfo, "curl_easy_getinfo"},
        {(void **)&curl.perform, "curl_easy_perform"},       {(void **)&curl.cleanup, "curl_easy_cleanup"},
        {(void **)&curl.strerror, "curl_easy_strerror"},     {(void **)&curl.append, "curl_slist_append"},
        {(void **)&curl.free_all, "curl_slist_free_all"},
    };
    for (size_t index = 0; index < sizeof symbols / sizeof *symbols; index++) {
        *symbols[index].place = dlsym(library, symbols[index].name);
        if (!*symbols[index].place) return;
    }
    is_loaded = curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *context) {
    const ccurl_request *request = context;
    return request->take(request->context, bytes, size * count) == 0 ? size * count : 0;
}

static struct curl_slist *header_list(const char *const *headers) {
    struct curl_slist *list = NULL;
    for (; headers && *headers; headers++) {
        struct curl_slist *longer = curl.append(list, *headers);
        if (!longer) break;
        list = longer;
    }
    return list;
}

long ccurl_perform(const ccurl_request *request, char error[CCURL_ERROR_SIZE]) {
    error[0] = 0;
    pthread_once(&once, load);
    CURL *handle = is_loaded ? curl.init() : NULL;
    if (!handle) {
        snprintf(error, CCURL_ERROR_SIZE, "libcurl (libcurl.so.4) cannot be loaded");
        return -1;
    }
    struct curl_slist *headers = header_list(request->headers);
    curl.setopt(handle, CURLOPT_ERRORBUFFER, error);
    curl.setopt(handle, CURLOPT_URL, request->url);
    curl.setopt(handle, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl.setopt(handle, CURLOPT_CUSTOMREQUEST, request->method);
    curl.setopt(handle, CURLOPT_HTTPHEADER, headers);
    curl.setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl.setopt(handle, CURLOPT_TIMEOUT_MS, request->timeout_ms);
    curl.setopt(handle, CURLOPT_WRITEFUNCTION, on_bytes);
    curl.setopt(handle, CURLOPT_WRITEDATA, request);
    if (request->body) {
        curl.setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_size);
        curl.setopt(handle, CURLOPT_POSTFIELDS, request->body);
    }
    CURLcode code = curl.perform(handle);
    long status = -1;
    if (code == CURLE_OK) {
        curl.getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    } else if (!error[0]) {
        snprintf(error, CCURL_ERROR_SIZE, "%s", curl.strerror(code));
    }
    curl.cleanup(handle);
    curl.free_all(headers);
    return status;
}
