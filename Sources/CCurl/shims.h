// libcurl for Swift, which cannot call variadic C functions: one function for each type of argument.

#ifndef WEBSERVICE_CCURL_SHIMS_H
#define WEBSERVICE_CCURL_SHIMS_H

#include <curl/curl.h>
#include <dlfcn.h>

#ifdef __linux__
#include <sys/epoll.h>
#endif

#if LIBCURL_VERSION_NUM < 0x075000
#error "WebServiceCurl needs libcurl 7.80 or newer"
#endif

static inline CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode ccurl_set_size(CURL *easy, CURLoption option, curl_off_t value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, const void *value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) { return curl_easy_setopt(easy, option, value); }

// Copies the bytes.
static inline CURLcode ccurl_set_blob(CURL *easy, CURLoption option, const void *bytes, size_t count) {
    struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_COPY};
    return curl_easy_setopt(easy, option, &blob);
}

typedef size_t (*ccurl_bytes_callback)(char *bytes, size_t size, size_t count, void *context);
typedef int (*ccurl_seek_callback)(void *context, curl_off_t offset, int origin);
typedef int (*ccurl_prereq_callback)(void *context, char *remote, char *local, int remote_port, int local_port);
typedef curl_socket_t (*ccurl_open_socket_callback)(void *context, curlsocktype purpose, struct curl_sockaddr *address);
typedef int (*ccurl_resolver_callback)(void *resolver, void *reserved, void *context);
typedef int (*ccurl_close_socket_callback)(void *context, curl_socket_t socket);
typedef int (*ccurl_debug_callback)(CURL *easy, curl_infotype type, char *bytes, size_t count, void *context);

// The options are CURLOPT_WRITEFUNCTION, CURLOPT_HEADERFUNCTION and CURLOPT_READFUNCTION.
static inline CURLcode ccurl_set_bytes_callback(CURL *easy, CURLoption option, ccurl_bytes_callback callback) {
    return curl_easy_setopt(easy, option, callback);
}
static inline CURLcode ccurl_set_seek_callback(CURL *easy, ccurl_seek_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, callback);
}
static inline CURLcode ccurl_set_resolver_callback(CURL *easy, ccurl_resolver_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, callback);
}
static inline CURLcode ccurl_set_prereq_callback(CURL *easy, ccurl_prereq_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, callback);
}
static inline CURLcode ccurl_set_open_socket_callback(CURL *easy, ccurl_open_socket_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, callback);
}
static inline CURLcode ccurl_set_close_socket_callback(CURL *easy, ccurl_close_socket_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, callback);
}
static inline CURLcode ccurl_set_debug_callback(CURL *easy, ccurl_debug_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, callback);
}

// Only http and https, whatever libcurl was built with. The option is CURLOPT_PROTOCOLS_STR of libcurl 7.85, or the older
// CURLOPT_PROTOCOLS, which is deprecated. The libcurl that runs can be older or newer than its header.
static inline CURLcode ccurl_restrict_protocols(CURL *easy) {
    CURLcode code = curl_easy_setopt(easy, (CURLoption)(CURLOPTTYPE_STRINGPOINT + 318), "http,https");
    if (code != CURLE_UNKNOWN_OPTION) return code;
    return curl_easy_setopt(easy, (CURLoption)(CURLOPTTYPE_LONG + 181), (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
}

// CURLOPT_QUICK_EXIT of libcurl 7.87: a name look-up that is no longer of use is left to its thread. Older ones do not know it and wait for the look-up.
static inline CURLcode ccurl_set_quick_exit(CURL *easy) { return curl_easy_setopt(easy, (CURLoption)(CURLOPTTYPE_LONG + 322), 1L); }

// CURLMOPT_QUICK_EXIT of libcurl 8.20, which has one set of look-up threads for each multi handle, and would wait for them.
static inline CURLMcode ccurl_multi_set_quick_exit(CURLM *multi) { return curl_multi_setopt(multi, (CURLMoption)(CURLOPTTYPE_LONG + 21), 1L); }

// Whether libcurl joins a folded header line to a field of the response before, whose memory was freed: from 7.83 until it was mended in 8.1.
static inline int ccurl_joins_freed_headers(void) {
    unsigned version = curl_version_info(CURLVERSION_NOW)->version_num;
    return version >= 0x075300 && version < 0x080100;
}

// Macros with casts, which Swift does not import.
static inline long ccurl_auth_basic(void) { return (long)CURLAUTH_BASIC; }
static inline long ccurl_auth_digest(void) { return (long)CURLAUTH_DIGEST; }

static inline int ccurl_supports_https_proxies(void) { return (curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_HTTPS_PROXY) != 0; }

// Whether a connection can be used again for HTTP/2 without negotiation: mended in 8.0 (curl issue 10634).
static inline int ccurl_reuses_known_http2(void) { return curl_version_info(CURLVERSION_NOW)->version_num >= 0x080000; }

// Whether a response over HTTP/2 can be paused without loss and without holding others up: since 8.17.
static inline int ccurl_pauses_http2(void) { return curl_version_info(CURLVERSION_NOW)->version_num >= 0x081100; }

// Whether libcurl has the first connection filter for HTTP/2, of 7.88 to 8.0. It receives frames until the connection has no more bytes, and a header that does not fit
// into its buffer can be delivered without the end of the response.
static inline int ccurl_has_first_http2_filter(void) {
    unsigned version = curl_version_info(CURLVERSION_NOW)->version_num;
    return version >= 0x075800 && version < 0x080100;
}

// Whether a request that requires HTTP/1.1 may be sent on a connection with HTTP/2: from 8.11 to 8.12, which only log that they must not.
static inline int ccurl_ignores_required_http1(void) {
    unsigned version = curl_version_info(CURLVERSION_NOW)->version_num;
    return version >= 0x080B00 && version < 0x080D00;
}

// Whether libcurl itself sends the bytes of all TLS connections, without SIGPIPE (since 7.88), and receives nothing right after it has sent a request, if the
// exchange is paused (not from 8.7 to 8.15).
static inline int ccurl_only_sends_when_paused(void) {
    unsigned version = curl_version_info(CURLVERSION_NOW)->version_num;
    return (version >= 0x075800 && version < 0x080700) || version >= 0x081000;
}

static inline CURLcode ccurl_get_long(CURL *easy, CURLINFO info, long *value) { return curl_easy_getinfo(easy, info, value); }
static inline CURLcode ccurl_get_size(CURL *easy, CURLINFO info, curl_off_t *value) { return curl_easy_getinfo(easy, info, value); }
static inline CURLcode ccurl_get_pointer(CURL *easy, CURLINFO info, void **value) { return curl_easy_getinfo(easy, info, value); }

static inline CURLcode ccurl_get_socket(CURL *easy, curl_socket_t *socket) { return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, socket); }

typedef int (*ccurl_socket_callback)(CURL *easy, curl_socket_t socket, int what, void *context, void *socket_context);
typedef int (*ccurl_timer_callback)(CURLM *multi, long milliseconds, void *context);

static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) { return curl_multi_setopt(multi, option, value); }
static inline CURLMcode ccurl_multi_set_callbacks(CURLM *multi, ccurl_socket_callback socket, ccurl_timer_callback timer, void *context) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket);
    if (code == CURLM_OK) code = curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
    if (code == CURLM_OK) code = curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer);
    if (code == CURLM_OK) code = curl_multi_setopt(multi, CURLMOPT_TIMERDATA, context);
    return code;
}

// How long parsed certificates are used before their file is read again, where libcurl keeps them.
static inline void ccurl_set_certificate_lifetime(CURL *easy, long seconds) {
    curl_easy_setopt(easy, (CURLoption)(CURLOPTTYPE_LONG + 321), seconds);  // CURLOPT_CA_CACHE_TIMEOUT of libcurl 7.87
}

// What the handles of one loop share, all on one thread: so no locks.
static inline CURLSHcode ccurl_share_tls_sessions(CURLSH *share) { return curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION); }

// The message of a transfer that is done. Swift does not import the union in CURLMsg.
static inline CURLcode ccurl_message_result(const CURLMsg *message) { return message->data.result; }

// Functions that any thread may call, and that do not change.
#define CCURL_SENDABLE __attribute__((swift_attr("@Sendable")))

// zlib, which libcurl itself uses: its stable part, loaded when the program runs, so that no headers of it are needed.

typedef struct {
    const unsigned char *next_in;
    unsigned avail_in;
    unsigned long total_in;
    unsigned char *next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char *message;
    void *state;
    void *(*allocate)(void *, unsigned, unsigned);
    void (*release)(void *, void *);
    void *opaque;
    int data_type;
    unsigned long checksum;
    unsigned long reserved;
} ccurl_z_stream;

typedef struct CCURL_SENDABLE {
    int (*_Nonnull inflateInit2_)(ccurl_z_stream *_Nonnull, int window_bits, const char *_Nonnull version, int stream_size);
    int (*_Nonnull inflate)(ccurl_z_stream *_Nonnull, int flush);
    int (*_Nonnull inflateReset)(ccurl_z_stream *_Nonnull);
    int (*_Nonnull inflateEnd)(ccurl_z_stream *_Nonnull);
} ccurl_zlib;

// Whether zlib is there.
static inline int ccurl_load_zlib(ccurl_zlib *_Nonnull zlib) {
#ifdef __APPLE__
    void *library = dlopen("/usr/lib/libz.dylib", RTLD_NOW | RTLD_LOCAL);
#else
    void *library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
#endif
    if (!library) return 0;
    void *init = dlsym(library, "inflateInit2_"), *run = dlsym(library, "inflate"), *reset = dlsym(library, "inflateReset"), *end = dlsym(library, "inflateEnd");
    if (!init || !run || !reset || !end) return 0;
    zlib->inflateInit2_ = (int (*)(ccurl_z_stream *, int, const char *, int))init;
    zlib->inflate = (int (*)(ccurl_z_stream *, int))run;
    zlib->inflateReset = (int (*)(ccurl_z_stream *))reset;
    zlib->inflateEnd = (int (*)(ccurl_z_stream *))end;
    return 1;
}

// The decoders of brotli and zstd, which most builds of libcurl use, loaded in the same way.

typedef struct CCURL_SENDABLE {
    void *_Nullable (*_Nonnull create)(const void *_Nullable allocate, const void *_Nullable release, void *_Nullable context);
    void (*_Nonnull destroy)(void *_Nonnull);
    int (*_Nonnull decompress)(void *_Nonnull, size_t *_Nonnull available_in, const unsigned char *_Nullable *_Nonnull next_in, size_t *_Nonnull available_out, unsigned char *_Nullable *_Nonnull next_out, size_t *_Nullable total_out);
} ccurl_brotli;

// Whether the decoder of brotli is there.
static inline int ccurl_load_brotli(ccurl_brotli *_Nonnull brotli) {
#ifdef __APPLE__
    void *library = dlopen("libbrotlidec.1.dylib", RTLD_NOW | RTLD_LOCAL);
#else
    void *library = dlopen("libbrotlidec.so.1", RTLD_NOW | RTLD_LOCAL);
#endif
    if (!library) return 0;
    void *create = dlsym(library, "BrotliDecoderCreateInstance"), *destroy = dlsym(library, "BrotliDecoderDestroyInstance"), *run = dlsym(library, "BrotliDecoderDecompressStream");
    if (!create || !destroy || !run) return 0;
    brotli->create = (void *(*)(const void *, const void *, void *))create;
    brotli->destroy = (void (*)(void *))destroy;
    brotli->decompress = (int (*)(void *, size_t *, const unsigned char **, size_t *, unsigned char **, size_t *))run;
    return 1;
}

typedef struct {
    void *_Nullable bytes;
    size_t size;
    size_t offset;
} ccurl_zstd_output;

typedef struct {
    const void *_Nullable bytes;
    size_t size;
    size_t offset;
} ccurl_zstd_input;

typedef struct CCURL_SENDABLE {
    void *_Nullable (*_Nonnull create)(void);
    size_t (*_Nonnull destroy)(void *_Nonnull);
    size_t (*_Nonnull set)(void *_Nonnull, int parameter, int value);
    size_t (*_Nonnull decompress)(void *_Nonnull, ccurl_zstd_output *_Nonnull, ccurl_zstd_input *_Nonnull);
    unsigned (*_Nonnull is_error)(size_t);
} ccurl_zstd;

// Whether the decoder of zstd is there.
static inline int ccurl_load_zstd(ccurl_zstd *_Nonnull zstd) {
#ifdef __APPLE__
    void *library = dlopen("libzstd.1.dylib", RTLD_NOW | RTLD_LOCAL);
#else
    void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
#endif
    if (!library) return 0;
    void *create = dlsym(library, "ZSTD_createDStream"), *destroy = dlsym(library, "ZSTD_freeDStream"), *set = dlsym(library, "ZSTD_DCtx_setParameter");
    void *run = dlsym(library, "ZSTD_decompressStream"), *is_error = dlsym(library, "ZSTD_isError");
    if (!create || !destroy || !set || !run || !is_error) return 0;
    zstd->create = (void *(*)(void))create;
    zstd->destroy = (size_t (*)(void *))destroy;
    zstd->set = (size_t (*)(void *, int, int))set;
    zstd->decompress = (size_t (*)(void *, ccurl_zstd_output *, ccurl_zstd_input *))run;
    zstd->is_error = (unsigned (*)(size_t))is_error;
    return 1;
}

// The result of dladdr, Dl_info, which glibc declares only with _GNU_SOURCE.
typedef struct {
    const char *_Nullable file;
    void *_Nullable base;
    const char *_Nullable name;
    void *_Nullable address;
} ccurl_location;

// The library that contains libcurl, for functions of the libraries that libcurl was linked with. The program can contain another OpenSSL, whose functions must not
// receive the connections of libcurl.
static inline void *_Nullable ccurl_library(void) {
    void *program = dlopen(NULL, RTLD_NOW);
    if (!program) return NULL;
    void *function = dlsym(program, "curl_easy_init");
    int (*locate)(const void *, ccurl_location *) = (int (*)(const void *, ccurl_location *))dlsym(program, "dladdr");
    ccurl_location location = {NULL, NULL, NULL, NULL};
    if (!function || !locate || !locate(function, &location) || !location.file) return program;
    void *library = dlopen(location.file, RTLD_NOW | RTLD_NOLOAD);
    return library ? library : program;
}

// Whether OpenSSL's functions in a library are those of the OpenSSL that libcurl reports, "OpenSSL/3.0.1" for "OpenSSL 3.0.1 14 Dec 2021". They are not if libcurl
// contains its OpenSSL without exporting it, and another library that libcurl uses has one of its own.
static inline int ccurl_contains_openssl(void *_Nonnull library) {
    const char *reported = curl_version_info(CURLVERSION_NOW)->ssl_version;
    const char *(*version)(int) = (const char *(*)(int))dlsym(library, "OpenSSL_version");
    const char *found = version ? version(0) : NULL;
    if (!reported || !found) return 0;
    for (; *reported && *reported != ' '; reported++, found++) {
        if (*found != (*reported == '/' ? ' ' : *reported)) return 0;
    }
    return *found == ' ' || !*found;
}

// OpenSSL, where libcurl uses it: what tells of the end of a connection, found when the program runs, so that no headers of it are needed.

typedef void (*ccurl_ssl_message_callback)(int is_sent, int version, int type, const void *bytes, size_t count, void *ssl, void *context);

typedef struct {
    int (*_Nonnull SSL_get_shutdown)(const void *_Nonnull);
    void (*_Nonnull SSL_set_msg_callback)(void *_Nonnull, ccurl_ssl_message_callback _Nullable);
    long (*_Nonnull SSL_ctrl)(void *_Nonnull, int command, long number, void *_Nullable);
} ccurl_openssl;

// Whether the field `:status` of a response over HTTP/2 has arrived, even if the rest of the header has not: curl_easy_header of libcurl 7.83. Older ones do not tell.
static inline int ccurl_has_status(CURL *_Nonnull easy) {
    void *library = ccurl_library();
    int (*header)(CURL *, const char *, size_t, unsigned, int, void **) =
        library ? (int (*)(CURL *, const char *, size_t, unsigned, int, void **))dlsym(library, "curl_easy_header") : NULL;
    unsigned pseudo = 1 << 4;  // CURLH_PSEUDO
    void *found = NULL;
    return header && !header(easy, ":status", 0, pseudo, -1, &found);
}

// Whether libcurl uses OpenSSL and its functions can be called.
static inline int ccurl_load_openssl(ccurl_openssl *_Nonnull openssl) {
    void *library = ccurl_library();
    if (!library || !ccurl_contains_openssl(library)) return 0;
    void *shutdown = dlsym(library, "SSL_get_shutdown"), *callback = dlsym(library, "SSL_set_msg_callback"), *ctrl = dlsym(library, "SSL_ctrl");
    if (!shutdown || !callback || !ctrl) return 0;
    openssl->SSL_get_shutdown = (int (*)(const void *))shutdown;
    openssl->SSL_set_msg_callback = (void (*)(void *, ccurl_ssl_message_callback))callback;
    openssl->SSL_ctrl = (long (*)(void *, int, long, void *))ctrl;
    return 1;
}

// Whether a password is that of PKCS #12 data, as far as OpenSSL is there to verify it.

enum { CCURL_PKCS12_VALID, CCURL_PKCS12_WRONG_PASSWORD, CCURL_PKCS12_DAMAGED, CCURL_PKCS12_UNKNOWN };

static inline int ccurl_check_pkcs12(const unsigned char *_Nullable bytes, size_t count, const char *_Nullable password) {
    void *library = ccurl_library();
    if (!library || !ccurl_contains_openssl(library) || count > 0x7fffffff) return CCURL_PKCS12_UNKNOWN;
    void *(*decode)(void **, const unsigned char **, long) = (void *(*)(void **, const unsigned char **, long))dlsym(library, "d2i_PKCS12");
    int (*verify)(void *, const char *, int) = (int (*)(void *, const char *, int))dlsym(library, "PKCS12_verify_mac");
    void (*release)(void *) = (void (*)(void *))dlsym(library, "PKCS12_free");
    void (*clear)(void) = (void (*)(void))dlsym(library, "ERR_clear_error");
    if (!decode || !verify || !release || !clear) return CCURL_PKCS12_UNKNOWN;
    void *decoded = bytes ? decode(NULL, &bytes, (long)count) : NULL;
    if (!decoded) {
        clear();
        return CCURL_PKCS12_DAMAGED;
    }
    int valid = password && *password ? verify(decoded, password, -1) : verify(decoded, NULL, 0) || verify(decoded, "", 0);
    release(decoded);
    clear();
    return valid ? CCURL_PKCS12_VALID : CCURL_PKCS12_WRONG_PASSWORD;
}

// The connection of a transfer that is in flight; NULL without TLS and for other libraries than OpenSSL.
static inline void *_Nullable ccurl_openssl_connection(CURL *_Nonnull easy) {
    struct curl_tlssessioninfo *information = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &information) != CURLE_OK || !information) return NULL;
    return information->backend == CURLSSLBACKEND_OPENSSL ? information->internals : NULL;
}

// What the TLS library under libcurl has decrypted and not handed over: OpenSSL's function, or that of GnuTLS.

// gnutls_datum_t
typedef struct {
    unsigned char *_Nullable data;
    unsigned size;
} ccurl_datum;

typedef struct {
    int (*_Nullable SSL_has_pending)(const void *_Nonnull);
    int (*_Nullable SSL_want)(const void *_Nonnull);
    int (*_Nullable gnutls_record_get_direction)(void *_Nonnull);
    size_t (*_Nullable gnutls_record_check_pending)(void *_Nonnull);
    void (*_Nullable SSL_get0_alpn_selected)(const void *_Nonnull, const unsigned char *_Nullable *_Nonnull protocol, unsigned *_Nonnull length);
    int (*_Nullable gnutls_alpn_get_selected_protocol)(void *_Nonnull, ccurl_datum *_Nonnull protocol);
    const char *_Nullable (*_Nullable SSL_get_version)(const void *_Nonnull);
    const void *_Nullable (*_Nullable SSL_get_current_cipher)(const void *_Nonnull);
    const char *_Nullable (*_Nullable SSL_CIPHER_get_name)(const void *_Nonnull);
} ccurl_tls;

static inline ccurl_tls ccurl_load_tls(void) {
    void *library = ccurl_library();
    ccurl_tls tls = {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    if (!library) return tls;
    if (ccurl_contains_openssl(library)) {
        tls.SSL_has_pending = (int (*)(const void *))dlsym(library, "SSL_has_pending");
        tls.SSL_want = (int (*)(const void *))dlsym(library, "SSL_want");
        tls.SSL_get_version = (const char *(*)(const void *))dlsym(library, "SSL_get_version");
        tls.SSL_get_current_cipher = (const void *(*)(const void *))dlsym(library, "SSL_get_current_cipher");
        tls.SSL_CIPHER_get_name = (const char *(*)(const void *))dlsym(library, "SSL_CIPHER_get_name");
        tls.SSL_get0_alpn_selected = (void (*)(const void *, const unsigned char **, unsigned *))dlsym(library, "SSL_get0_alpn_selected");
    }
    tls.gnutls_record_check_pending = (size_t (*)(void *))dlsym(library, "gnutls_record_check_pending");
    tls.gnutls_record_get_direction = (int (*)(void *))dlsym(library, "gnutls_record_get_direction");
    tls.gnutls_alpn_get_selected_protocol = (int (*)(void *, ccurl_datum *))dlsym(library, "gnutls_alpn_get_selected_protocol");
    return tls;
}

// The version of HTTP that the TLS handshake of a connection has selected: 2 or 3, and 0 for another one and where the TLS library does not tell. Without TLS, 2, because
// only prior knowledge can select it.
static inline int ccurl_tls_selected_version(CURL *easy, ccurl_tls tls) {
    struct curl_tlssessioninfo *info = NULL;
    const unsigned char *name = NULL;
    ccurl_datum datum = {NULL, 0};
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &info) != CURLE_OK || !info || !info->internals) return 2;
    if (info->backend == CURLSSLBACKEND_OPENSSL && tls.SSL_get0_alpn_selected) {
        tls.SSL_get0_alpn_selected(info->internals, &name, &datum.size);
    }
    if (info->backend == CURLSSLBACKEND_GNUTLS && tls.gnutls_alpn_get_selected_protocol && !tls.gnutls_alpn_get_selected_protocol(info->internals, &datum)) {
        name = datum.data;
    }
    return datum.size == 2 && name && name[0] == 'h' && (name[1] == '2' || name[1] == '3') ? name[1] - '0' : 0;
}

// The version and the cipher suite of the connection of an exchange; NULL without TLS and for other libraries than OpenSSL. The strings are constants of OpenSSL.
typedef struct {
    const char *_Nullable version;
    const char *_Nullable cipher;
} ccurl_names;

static inline ccurl_names ccurl_tls_names(CURL *_Nonnull easy, ccurl_tls tls) {
    ccurl_names names = {NULL, NULL};
    void *connection = ccurl_openssl_connection(easy);
    if (!connection) return names;
    if (tls.SSL_get_version) names.version = tls.SSL_get_version(connection);
    const void *cipher = tls.SSL_get_current_cipher ? tls.SSL_get_current_cipher(connection) : NULL;
    if (cipher && tls.SSL_CIPHER_get_name) names.cipher = tls.SSL_CIPHER_get_name(cipher);
    return names;
}

// Whether the connection of an exchange holds decrypted bytes; 0 without TLS, and where the TLS library does not tell.
static inline int ccurl_tls_has_pending(CURL *easy, ccurl_tls tls) {
    struct curl_tlssessioninfo *info = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &info) != CURLE_OK || !info || !info->internals) return 0;
    if (info->backend == CURLSSLBACKEND_OPENSSL && tls.SSL_has_pending) return tls.SSL_has_pending(info->internals);
    if (info->backend == CURLSSLBACKEND_GNUTLS && tls.gnutls_record_check_pending) return tls.gnutls_record_check_pending(info->internals) > 0;
    return 0;
}

// What the TLS connection of a handle waits for after a call that returned CURLE_AGAIN: CURL_POLL_IN or CURL_POLL_OUT; CURL_POLL_NONE without TLS, and where the TLS
// library does not tell.
static inline int ccurl_tls_awaits(CURL *easy, ccurl_tls tls) {
    struct curl_tlssessioninfo *info = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &info) != CURLE_OK || !info || !info->internals) return CURL_POLL_NONE;
    if (info->backend == CURLSSLBACKEND_OPENSSL && tls.SSL_want) {
        int awaited = tls.SSL_want(info->internals);
        return awaited == 2 ? CURL_POLL_OUT : awaited == 3 ? CURL_POLL_IN : CURL_POLL_NONE;  // SSL_WRITING, SSL_READING
    }
    if (info->backend == CURLSSLBACKEND_GNUTLS && tls.gnutls_record_get_direction) {
        return tls.gnutls_record_get_direction(info->internals) ? CURL_POLL_OUT : CURL_POLL_IN;
    }
    return CURL_POLL_NONE;
}

// Whether a connection for the caller is closed with its handle: since libcurl 7.85. Before, it stays open until libcurl opens another one.
static inline int ccurl_closes_with_handle(void) { return curl_version_info(CURLVERSION_NOW)->version_num >= 0x075500; }

static inline curl_socket_t ccurl_socket_timeout(void) { return CURL_SOCKET_TIMEOUT; }

#endif
