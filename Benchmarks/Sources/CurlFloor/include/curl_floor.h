#ifndef CURL_FLOOR_H
#define CURL_FLOOR_H

// Requests `url` again and again for so many seconds, with `in_flight` requests under way at a time, on one thread with libcurl's multi interface:
// easy handles and connections are used again, bodies go into a buffer. Every answer has to be a 200 with `length` bytes.
//
// `trusted` is the file with the certificates to trust, or NULL without TLS; with `http2` HTTP/2 is offered.
//
// Returns how many answers came, or -1 after the first that is not right.
long curl_floor(const char *url, int in_flight, double seconds, long length, const char *trusted, int http2);

#endif
