#ifndef CURL_FLOOR_H
#define CURL_FLOOR_H

// Requests `url` repeatedly for `seconds` seconds, with `in_flight` requests at a time, on one
// thread with libcurl's multi interface. Easy handles and connections are reused, and bodies are
// written to a buffer. Every response must be a 200 with `length` bytes.
//
// `trusted` is the file with the trusted certificates, or NULL without TLS. `http2` offers HTTP/2.
//
// Returns the number of responses, or -1 after the first invalid one.
long curl_floor(const char *url, int in_flight, double seconds, long length, const char *trusted, int http2);

// Opens connections to `url` with connect-only handles, whose handshakes of WebSocket succeed, and
// leaves them open until the process exits. Not for more than one thread.
//
// Returns 0, or -1 after the first failure.
int curl_floor_open_idle(const char *url, long count);

#endif
