// Records the changes that processes make to the files of a folder, for tests of power failures
// (VolatileDisk.swift). It is loaded with LD_PRELOAD and replaces functions of the C library.
//
//     DISK_FOLDER  the absolute path of the folder, without links
//     DISK_LOGS    the folder of the logs: one file PID.log for each process
//     DISK_IGNORED `files`, `folders` or `all`: whose fsync has no effect
//     DISK_END     the number of the change before which the process is killed
//
// A record is a line `INSTANT OPERATION INODE OFFSET COUNT PATH` and COUNT bytes: those of a write,
// or the second path of a rename or link. Paths are relative to the folder. An operation and its
// record are one step for all processes with the same folder of logs. The instant orders the
// records of several processes. A record follows its operation, so a process that is killed during
// this step may have executed one operation without a record.
//
// Files that are changed with functions that are not replaced here are recorded incompletely, which
// a test detects. The index of the log of SQLite is mapped, but does not matter after a crash.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAXIMUM_DESCRIPTOR = 1 << 16 };

static int log_file = -1, lock_file = -1;
static const char *folder;
static size_t folder_count;
static bool ignores_files, ignores_folders;
static long change_count, last_change;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { dev_t device; ino_t inode; } tracked[MAXIMUM_DESCRIPTOR];

__attribute__((constructor)) static void start(void) {
    const char *logs = getenv("DISK_LOGS"), *ignored = getenv("DISK_IGNORED"), *end = getenv("DISK_END");
    char path[PATH_MAX];
    folder = getenv("DISK_FOLDER");
    if (!folder || !logs) return;
    folder_count = strlen(folder);
    ignores_files = ignored && strcmp(ignored, "folders") != 0;
    ignores_folders = ignored && strcmp(ignored, "files") != 0;
    last_change = end ? atol(end) : 0;
    snprintf(path, sizeof path, "%s/lock", logs);
    lock_file = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    snprintf(path, sizeof path, "%s/%d.log", logs, getpid());
    log_file = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (lock_file < 0 || log_file < 0) abort();
}

// Begins an operation. Kills the process if it is the last one.
static void begin(void) {
    pthread_mutex_lock(&lock);
    while (flock(lock_file, LOCK_EX) < 0 && errno == EINTR) {}
    if (++change_count == last_change) kill(getpid(), SIGKILL);
}

static void end(void) {
    int number = errno;
    flock(lock_file, LOCK_UN);
    pthread_mutex_unlock(&lock);
    errno = number;
}

static void record(
    const char *operation, ino_t inode, long long offset, const char *path, const void *bytes, size_t count
) {
    int number = errno;
    struct timespec instant;
    char *buffer = malloc(count + PATH_MAX + 128);
    if (!buffer) abort();
    clock_gettime(CLOCK_MONOTONIC, &instant);
    size_t length = sprintf(
        buffer, "%lld %s %llu %lld %zu %s\n", instant.tv_sec * 1000000000LL + instant.tv_nsec, operation,
        (unsigned long long)inode, offset, count, path);
    if (count > 0) memcpy(buffer + length, bytes, count);
    length += count;
    for (size_t written = 0; written < length;) {
        long more = syscall(SYS_write, log_file, buffer + written, length - written);
        if (more < 0 && errno != EINTR) abort();
        if (more > 0) written += more;
    }
    free(buffer);
    errno = number;
}

// Writes the path relative to the folder, and returns whether the file is in the folder.
static bool resolve(int at, const char *name, char path[PATH_MAX]) {
    char link[64], full[2 * PATH_MAX];
    int number = errno;
    if (log_file < 0) return false;
    if (name[0] == '/') {
        snprintf(full, sizeof full, "%s", name);
    } else {
        if (at == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        ssize_t count = readlink(link, full, PATH_MAX - 1);
        errno = number;
        if (count < 0) return false;
        snprintf(full + count, PATH_MAX, "/%s", name);
    }
    if (strncmp(full, folder, folder_count) != 0 || full[folder_count] != '/') return false;
    snprintf(path, PATH_MAX, "%s", full + folder_count + 1);
    return true;
}

static bool is_tracked(int file, ino_t *inode) {
    struct stat status;
    int number = errno;
    if (log_file < 0 || file < 0 || file >= MAXIMUM_DESCRIPTOR || tracked[file].inode == 0) return false;
    // The descriptor may have been closed and used again by functions that are not replaced.
    bool is_same = fstat(file, &status) == 0 && status.st_ino == tracked[file].inode
        && status.st_dev == tracked[file].device && S_ISREG(status.st_mode);
    errno = number;
    *inode = tracked[file].inode;
    return is_same;
}

static int open_file(int at, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    struct stat status;
    bool is_change = (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC);
    if (!is_change || !resolve(at, name, path)) return syscall(SYS_openat, at, name, flags, mode);
    begin();
    int number = errno;
    bool existed = fstatat(at, name, &status, 0) == 0;
    errno = number;
    int file = syscall(SYS_openat, at, name, flags, mode);
    if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
        if (file >= MAXIMUM_DESCRIPTOR) abort();
        tracked[file].device = status.st_dev;
        tracked[file].inode = status.st_ino;
        if (!existed) record("create", status.st_ino, 0, path, NULL, 0);
        else if (flags & O_TRUNC) record("truncate", status.st_ino, 0, "-", NULL, 0);
    }
    end();
    return file;
}

static mode_t mode_of(int flags, va_list arguments) {
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list arguments; \
        va_start(arguments, flags); \
        mode_t mode = mode_of(flags, arguments); \
        va_end(arguments); \
        return open_file(AT_FDCWD, path, flags, mode); \
    }
#define OPEN_AT(name) \
    int name(int at, const char *path, int flags, ...) { \
        va_list arguments; \
        va_start(arguments, flags); \
        mode_t mode = mode_of(flags, arguments); \
        va_end(arguments); \
        return open_file(at, path, flags, mode); \
    }
OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)

int close(int file) {
    if (file >= 0 && file < MAXIMUM_DESCRIPTOR) tracked[file].inode = 0;
    return syscall(SYS_close, file);
}

// MARK: Content

ssize_t write(int file, const void *bytes, size_t count) {
    ino_t inode;
    if (!is_tracked(file, &inode)) return syscall(SYS_write, file, bytes, count);
    begin();
    ssize_t written = syscall(SYS_write, file, bytes, count);
    if (written > 0) record("write", inode, lseek(file, 0, SEEK_CUR) - written, "-", bytes, written);
    end();
    return written;
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    ino_t inode;
    if (!is_tracked(file, &inode)) return syscall(SYS_pwrite64, file, bytes, count, offset);
    begin();
    ssize_t written = syscall(SYS_pwrite64, file, bytes, count, offset);
    if (written > 0) record("write", inode, offset, "-", bytes, written);
    end();
    return written;
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    return pwrite64(file, bytes, count, offset);
}

int ftruncate64(int file, off64_t length) {
    ino_t inode;
    if (!is_tracked(file, &inode)) return syscall(SYS_ftruncate, file, length);
    begin();
    int result = syscall(SYS_ftruncate, file, length);
    if (result == 0) record("truncate", inode, length, "-", NULL, 0);
    end();
    return result;
}

int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

static int synchronize(int call, int file) {
    struct stat status;
    char path[PATH_MAX];
    // The name "." also resolves the folder itself.
    if (!resolve(file, ".", path) || fstat(file, &status) != 0) return syscall(call, file);
    begin();
    // What the system calls flush does not matter, because the files are written by VolatileDisk.
    if (!(S_ISDIR(status.st_mode) ? ignores_folders : ignores_files))
        record("synchronize", status.st_ino, 0, "-", NULL, 0);
    end();
    return 0;
}

int fsync(int file) { return synchronize(SYS_fsync, file); }
int fdatasync(int file) { return synchronize(SYS_fdatasync, file); }

// MARK: Names

static int change_name(const char *operation, int result, const char *path, const char *new_path) {
    if (result == 0) record(operation, 0, 0, path, new_path, new_path ? strlen(new_path) : 0);
    end();
    return result;
}

int renameat2(int at, const char *name, int new_at, const char *new_name, unsigned flags) {
    char path[PATH_MAX], new_path[PATH_MAX];
    bool is_inside = resolve(at, name, path);
    // A file that leaves or enters the folder is not supported.
    if (is_inside != resolve(new_at, new_name, new_path)) abort();
    if (!is_inside) return syscall(SYS_renameat2, at, name, new_at, new_name, flags);
    begin();
    return change_name("rename", syscall(SYS_renameat2, at, name, new_at, new_name, flags), path, new_path);
}

int renameat(int at, const char *name, int new_at, const char *new_name) {
    return renameat2(at, name, new_at, new_name, 0);
}

int rename(const char *name, const char *new_name) { return renameat2(AT_FDCWD, name, AT_FDCWD, new_name, 0); }

int linkat(int at, const char *name, int new_at, const char *new_name, int flags) {
    char path[PATH_MAX], new_path[PATH_MAX];
    if (!resolve(at, name, path) || !resolve(new_at, new_name, new_path))
        return syscall(SYS_linkat, at, name, new_at, new_name, flags);
    begin();
    return change_name("link", syscall(SYS_linkat, at, name, new_at, new_name, flags), path, new_path);
}

int link(const char *name, const char *new_name) { return linkat(AT_FDCWD, name, AT_FDCWD, new_name, 0); }

int unlinkat(int at, const char *name, int flags) {
    char path[PATH_MAX];
    if (!resolve(at, name, path)) return syscall(SYS_unlinkat, at, name, flags);
    begin();
    return change_name("unlink", syscall(SYS_unlinkat, at, name, flags), path, NULL);
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdirat(int at, const char *name, mode_t mode) {
    char path[PATH_MAX];
    struct stat status;
    if (!resolve(at, name, path)) return syscall(SYS_mkdirat, at, name, mode);
    begin();
    int result = syscall(SYS_mkdirat, at, name, mode);
    if (result == 0 && fstatat(at, name, &status, 0) == 0) record("mkdir", status.st_ino, 0, path, NULL, 0);
    end();
    return result;
}

int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }
