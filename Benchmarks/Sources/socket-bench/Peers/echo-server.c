// The server of the benchmark: it sends each complete message back, with libwebsockets.
//
// One thread, TCP_NODELAY, no permessage-deflate. It prints its port as soon as it listens.

#include <libwebsockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

struct message {
    struct message *next;
    enum lws_write_protocol opcode;
    size_t count;
    size_t capacity;
    // The bytes follow LWS_PRE bytes, which libwebsockets uses for the header of the frame.
    unsigned char bytes[];
};

struct connection {
    // The message that is being received.
    struct message *incoming;
    // The messages to send, the first one first.
    struct message *first;
    struct message *last;
};

static void append(struct connection *connection, struct lws *wsi, const void *bytes, size_t count) {
    struct message *message = connection->incoming;
    size_t rest = lws_remaining_packet_payload(wsi);
    size_t needed = (message ? message->count : 0) + count + rest;
    if (!message || message->capacity < needed) {
        struct message *larger = realloc(message, sizeof(struct message) + LWS_PRE + needed);
        if (!larger) abort();
        if (!message) {
            larger->next = NULL;
            larger->count = 0;
            larger->opcode = lws_frame_is_binary(wsi) ? LWS_WRITE_BINARY : LWS_WRITE_TEXT;
        }
        larger->capacity = needed;
        connection->incoming = message = larger;
    }
    memcpy(message->bytes + LWS_PRE + message->count, bytes, count);
    message->count += count;
    if (rest > 0 || !lws_is_final_fragment(wsi)) return;
    if (connection->last) connection->last->next = message; else connection->first = message;
    connection->last = message;
    connection->incoming = NULL;
}

// Sends messages for as long as the socket takes them.
static int send_messages(struct connection *connection, struct lws *wsi) {
    while (connection->first) {
        struct message *message = connection->first;
        if (lws_write(wsi, message->bytes + LWS_PRE, message->count, message->opcode) < 0) return -1;
        connection->first = message->next;
        if (!connection->first) connection->last = NULL;
        free(message);
        if (connection->first && lws_send_pipe_choked(wsi)) {
            lws_callback_on_writable(wsi);
            break;
        }
    }
    return 0;
}

static void clear(struct connection *connection) {
    while (connection->first) {
        struct message *message = connection->first;
        connection->first = message->next;
        free(message);
    }
    free(connection->incoming);
    memset(connection, 0, sizeof(*connection));
}

static int callback(struct lws *wsi, enum lws_callback_reasons reason, void *context, void *bytes, size_t count) {
    struct connection *connection = context;
    int on = 1;
    switch (reason) {
    case LWS_CALLBACK_ESTABLISHED:
        setsockopt(lws_get_socket_fd(wsi), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        return 0;
    case LWS_CALLBACK_RECEIVE:
        append(connection, wsi, bytes, count);
        if (connection->first) lws_callback_on_writable(wsi);
        return 0;
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return send_messages(connection, wsi);
    case LWS_CALLBACK_CLOSED:
        clear(connection);
        return 0;
    default:
        return 0;
    }
}

int main(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max < 20000 ? limit.rlim_max : 20000;
    setrlimit(RLIMIT_NOFILE, &limit);
    static const struct lws_protocols protocols[] = {
        {"echo", callback, sizeof(struct connection), 64 << 10, 0, NULL, 0}, {NULL, NULL, 0, 0, 0, NULL, 0}};
    struct lws_context_creation_info info;
    memset(&info, 0, sizeof(info));
    info.protocols = protocols;
    info.port = 0;
    info.iface = "127.0.0.1";
    info.pt_serv_buf_size = 128 << 10;
    info.gid = info.uid = -1;
    lws_set_log_level(LLL_ERR, NULL);
    struct lws_context *lws = lws_create_context(&info);
    if (!lws) return 1;
    printf("%d\n", lws_get_vhost_listen_port(lws_get_vhost_by_name(lws, "default")));
    fflush(stdout);
    while (lws_service(lws, 0) >= 0) {}
    lws_context_destroy(lws);
    return 0;
}
