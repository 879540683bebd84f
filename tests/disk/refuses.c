/* A disk that fails: preloaded, it changes the results of system calls on some files.
 *
 * While the file named by DISK_REFUSES exists, every sync fails, as on a disk with a damaged block. While the file
 * named by DISK_READ_ONLY exists, every write fails, as on a disk that the system made read-only after an error: for
 * open files too, which mount refuses. While the file named by DISK_QUOTA exists, writes fail as beyond a quota. Only
 * files whose path contains the content of that file are affected. Written data can still be read. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static int affects(const char *setting, const char *path) {
    const char *sign = getenv(setting);
    int opened = sign ? (int)syscall(SYS_openat, AT_FDCWD, sign, O_RDONLY | O_CLOEXEC, 0) : -1;
    if (opened < 0) {
        return 0;
    }
    char which[PATH_MAX] = "";
    ssize_t length = read(opened, which, sizeof which - 1);
    close(opened);
    return length > 0 && strstr(path, which);
}

static int affects_file(const char *setting, int file) {
    if (!getenv(setting)) {
        return 0;
    }
    char link[64], path[PATH_MAX] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    return readlink(link, path, sizeof path - 1) > 0 && affects(setting, path);
}

static long fails(int error) {
    errno = error;
    return -1;
}

static int sync_file(long call, int file) {
    return (int)(affects_file("DISK_REFUSES", file) ? fails(EIO) : syscall(call, file));
}

int fsync(int file) { return sync_file(SYS_fsync, file); }

int fdatasync(int file) { return sync_file(SYS_fdatasync, file); }

static int write_error(int file) {
    return affects_file("DISK_READ_ONLY", file) ? EROFS : affects_file("DISK_QUOTA", file) ? EDQUOT : 0;
}

ssize_t write(int file, const void *bytes, size_t length) {
    int error = write_error(file);
    return error ? fails(error) : syscall(SYS_write, file, bytes, length);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at) {
    int error = write_error(file);
    return error ? fails(error) : syscall(SYS_pwrite64, file, bytes, length, at);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t at) { return pwrite64(file, bytes, length, at); }

int ftruncate64(int file, off64_t length) {
    int error = write_error(file);
    return (int)(error ? fails(error) : syscall(SYS_ftruncate, file, length));
}

int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

static int open_file(const char *path, int flags, va_list more) {
    int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, int) : 0;
    int writes = (flags & O_ACCMODE) != O_RDONLY;
    if (writes && affects("DISK_READ_ONLY", path)) {
        return (int)fails(EROFS);
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int file = open_file(path, flags, more);
    va_end(more);
    return file;
}

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int file = open_file(path, flags, more);
    va_end(more);
    return file;
}
