#include "sqlite_floor.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct sqlite_floor {
    sqlite3 *reader, *writer;
    sqlite3_stmt *read, *write;
};

static const char pragmas[] = "PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON; PRAGMA synchronous = NORMAL;";
static const char table[] =
    "PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS entries (number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, form INTEGER NOT NULL, "
    "date INTEGER, checksum INTEGER NOT NULL, data BLOB NOT NULL)";

static sqlite3 *open_database(const char *path) {
    sqlite3 *database = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    if (sqlite3_open_v2(path, &database, flags, NULL) == SQLITE_OK && sqlite3_exec(database, pragmas, NULL, NULL, NULL) == SQLITE_OK
        && sqlite3_exec(database, table, NULL, NULL, NULL) == SQLITE_OK) return database;
    sqlite3_close_v2(database);
    return NULL;
}

sqlite_floor *sqlite_floor_open(const char *path) {
    sqlite_floor *floor = calloc(1, sizeof *floor);
    if (!floor) return NULL;
    floor->writer = open_database(path);
    floor->reader = open_database(path);
    if (floor->writer && floor->reader
        && sqlite3_prepare_v3(floor->reader, "SELECT form, date, checksum, data FROM entries WHERE key = ?1", -1, SQLITE_PREPARE_PERSISTENT, &floor->read, NULL) == SQLITE_OK
        && sqlite3_prepare_v3(floor->writer, "REPLACE INTO entries (key, form, date, checksum, data) VALUES (?1, ?2, ?3, ?4, ?5)", -1, SQLITE_PREPARE_PERSISTENT, &floor->write, NULL) == SQLITE_OK)
        return floor;
    sqlite_floor_close(floor);
    return NULL;
}

void sqlite_floor_close(sqlite_floor *floor) {
    sqlite3_finalize(floor->read);
    sqlite3_finalize(floor->write);
    sqlite3_close_v2(floor->reader);
    sqlite3_close_v2(floor->writer);
    free(floor);
}

int sqlite_floor_write(sqlite_floor *floor, const void *key, int key_size, const void *data, int size) {
    sqlite3_bind_blob(floor->write, 1, key, key_size, SQLITE_STATIC);
    sqlite3_bind_int64(floor->write, 2, 0);
    sqlite3_bind_int64(floor->write, 3, 1000000);
    sqlite3_bind_int64(floor->write, 4, -1);
    sqlite3_bind_blob(floor->write, 5, data, size, SQLITE_STATIC);
    int code = sqlite3_step(floor->write);
    sqlite3_reset(floor->write);
    return code == SQLITE_DONE ? 0 : -1;
}

int sqlite_floor_read(sqlite_floor *floor, const void *key, int key_size) {
    int size = -1;
    sqlite3_bind_blob(floor->read, 1, key, key_size, SQLITE_STATIC);
    if (sqlite3_step(floor->read) == SQLITE_ROW) {
        const void *bytes = sqlite3_column_blob(floor->read, 3);
        size = sqlite3_column_bytes(floor->read, 3);
        char *copy = malloc((size_t)size + 1);
        if (copy && bytes) memcpy(copy, bytes, (size_t)size); else size = -1;
        free(copy);
    }
    sqlite3_reset(floor->read);
    return size;
}

int file_floor_write(const char *path, const char *temporary, const void *data, size_t size) {
    int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return -1;
    int failed = write(file, data, size) != (ssize_t)size;
    failed |= close(file) != 0;
    return failed || rename(temporary, path) != 0 ? -1 : 0;
}

int file_floor_read(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    struct stat status;
    ssize_t size = -1;
    if (fstat(file, &status) == 0) {
        char *copy = malloc((size_t)status.st_size + 1);
        if (copy) size = read(file, copy, (size_t)status.st_size);
        free(copy);
    }
    close(file);
    return (int)size;
}
