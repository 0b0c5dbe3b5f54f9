#include "curl_floor.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct body {
    char *bytes;
    size_t count;
    size_t capacity;
};

static size_t receive(char *bytes, size_t size, size_t count, void *context) {
    struct body *body = context;
    size_t more = size * count;
    if (body->count + more > body->capacity) {
        body->capacity = (body->count + more) * 2;
        body->bytes = realloc(body->bytes, body->capacity);
    }
    memcpy(body->bytes + body->count, bytes, more);
    body->count += more;
    return more;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

long curl_floor(const char *url, int in_flight, double seconds, long length, const char *trusted, int http2) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    CURLM *multi = curl_multi_init();
    struct body *bodies = calloc((size_t)in_flight, sizeof(struct body));
    for (int index = 0; index < in_flight; index++) {
        CURL *easy = curl_easy_init();
        curl_easy_setopt(easy, CURLOPT_URL, url);
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, &bodies[index]);
        curl_easy_setopt(easy, CURLOPT_PRIVATE, &bodies[index]);
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1);
        if (http2) curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
        if (trusted) {
            curl_easy_setopt(easy, CURLOPT_CAINFO, trusted);
            curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);  // otherwise libcurl parses the file for each connection
        }
        curl_multi_add_handle(multi, easy);
    }
    double end = now() + seconds;
    long answers = 0;
    int active = in_flight;
    while (active > 0) {
        int running = 0, remaining = 0;
        curl_multi_perform(multi, &running);
        CURLMsg *message;
        while ((message = curl_multi_info_read(multi, &remaining))) {
            CURL *easy = message->easy_handle;
            struct body *body;
            long status = 0;
            curl_easy_getinfo(easy, CURLINFO_PRIVATE, &body);
            curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
            if (message->data.result != CURLE_OK || status != 200 || body->count != (size_t)length) return -1;
            answers++;
            body->count = 0;
            curl_multi_remove_handle(multi, easy);
            if (now() < end) {
                curl_multi_add_handle(multi, easy);
            } else {
                curl_easy_cleanup(easy);
                active--;
            }
        }
        if (active > 0) curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
    for (int index = 0; index < in_flight; index++) free(bodies[index].bytes);
    free(bodies);
    curl_multi_cleanup(multi);
    return answers;
}
