/* A disk that does not keep written data: preloaded, it fails every sync while the file named by DISK_REFUSES exists,
 * as a disk with a damaged block does. Only files whose path contains the content of that file are affected. Written
 * data can still be read. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int refuses(int file) {
    const char *sign = getenv("DISK_REFUSES");
    int opened = sign ? open(sign, O_RDONLY | O_CLOEXEC) : -1;
    if (opened < 0) {
        return 0;
    }
    char which[PATH_MAX] = "", link[64], path[PATH_MAX] = "";
    ssize_t length = read(opened, which, sizeof which - 1);
    close(opened);
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    return length > 0 && readlink(link, path, sizeof path - 1) > 0 && strstr(path, which);
}

static int kept(long call, int file) {
    if (refuses(file)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(call, file);
}

int fsync(int file) { return kept(SYS_fsync, file); }

int fdatasync(int file) { return kept(SYS_fdatasync, file); }
