// The floor for storages: SQLite and the file system as a C program uses them, prepared statements in a loop and nothing around them.

#ifndef SQLITE_FLOOR_H
#define SQLITE_FLOOR_H

#include <stddef.h>

typedef struct sqlite_floor sqlite_floor;

/// Opens a database with the table, the pragmas and the statements of SQLiteStorage; NULL when that fails.
sqlite_floor *_Nullable sqlite_floor_open(const char *_Nonnull path);
void sqlite_floor_close(sqlite_floor *_Nonnull floor);

/// Writes an entry. Returns 0 when it succeeds.
int sqlite_floor_write(sqlite_floor *_Nonnull floor, const void *_Nonnull key, int key_size, const void *_Nonnull data, int size);
/// Reads an entry into memory that is new each time, and frees it. Returns its size, -1 when it fails.
int sqlite_floor_read(sqlite_floor *_Nonnull floor, const void *_Nonnull key, int key_size);

/// Writes a file under another name and renames it. Returns 0 when it succeeds.
int file_floor_write(const char *_Nonnull path, const char *_Nonnull temporary, const void *_Nonnull data, size_t size);
/// Reads a file into memory that is new each time, and frees it. Returns its size, -1 when it fails.
int file_floor_read(const char *_Nonnull path);

#endif
