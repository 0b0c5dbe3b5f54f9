// The floor for storages: SQLite and the file system as a C program uses them, with prepared
// statements in a loop and without further layers.

#ifndef SQLITE_FLOOR_H
#define SQLITE_FLOOR_H

#include <stddef.h>

typedef struct sqlite_floor sqlite_floor;

/// Opens a database with the table, the pragmas and the statements of SQLiteStorage. Returns NULL
/// on failure.
sqlite_floor *_Nullable sqlite_floor_open(const char *_Nonnull path);
void sqlite_floor_close(sqlite_floor *_Nonnull floor);

/// Writes an entry. Returns 0 on success.
int sqlite_floor_write(sqlite_floor *_Nonnull floor, const void *_Nonnull key, int key_size, const void *_Nonnull data, int size);
/// Reads an entry into newly allocated memory and frees it. Returns its size, or -1 on failure.
int sqlite_floor_read(sqlite_floor *_Nonnull floor, const void *_Nonnull key, int key_size);

/// Writes a file under another name and renames it. Returns 0 on success.
int file_floor_write(const char *_Nonnull path, const char *_Nonnull temporary, const void *_Nonnull data, size_t size);
/// Reads a file into newly allocated memory and frees it. Returns its size, or -1 on failure.
int file_floor_read(const char *_Nonnull path);

#endif
