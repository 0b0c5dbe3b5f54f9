#include <curl/curl.h>
#include <string.h>

#include "curl_floor.h"

static const char *const request =
    "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

// Sends the handshake on an open connection, and receives the response. Returns whether it is 101.
static int upgrade(CURL *easy) {
    char response[4096];
    size_t count = 0, sent = 0;
    curl_socket_t socket = CURL_SOCKET_BAD;
    if (curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &socket) != CURLE_OK) return 0;
    if (curl_easy_send(easy, request, strlen(request), &sent) != CURLE_OK || sent != strlen(request)) return 0;
    while (count < sizeof(response) - 1) {
        size_t received = 0;
        CURLcode code = curl_easy_recv(easy, response + count, sizeof(response) - 1 - count, &received);
        if (code == CURLE_AGAIN) {
            struct curl_waitfd wait = {socket, CURL_WAIT_POLLIN, 0};
            CURLM *empty = curl_multi_init();
            curl_multi_wait(empty, &wait, 1, 1000, NULL);
            curl_multi_cleanup(empty);
            continue;
        }
        if (code != CURLE_OK || received == 0) return 0;
        count += received;
        response[count] = 0;
        if (strstr(response, "\r\n\r\n")) return strstr(response, " 101 ") != NULL;
    }
    return 0;
}

int curl_floor_open_idle(const char *url, long count) {
    static CURLM *multi;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (!multi) multi = curl_multi_init();
    for (long index = 0; index < count; index++) {
        CURL *easy = curl_easy_init();
        curl_easy_setopt(easy, CURLOPT_URL, url);
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        curl_multi_add_handle(multi, easy);
        int isOpen = 0;
        while (!isOpen) {
            int running = 0, remaining = 0;
            curl_multi_perform(multi, &running);
            CURLMsg *message;
            while ((message = curl_multi_info_read(multi, &remaining))) {
                if (message->easy_handle != easy || message->data.result != CURLE_OK) return -1;
                isOpen = 1;
            }
            if (!isOpen) curl_multi_poll(multi, NULL, 0, 1000, NULL);
        }
        if (!upgrade(easy)) return -1;
    }
    return 0;
}
