/* A disk that does not keep what is written: preloaded, it fails whatever waits for the disk while the file that
 * DISK_REFUSES names is there, as a disk with a damaged place does. What was written can still be read. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int kept(long call, int file) {
    const char *sign = getenv("DISK_REFUSES");
    if (sign && !access(sign, F_OK)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(call, file);
}

int fsync(int file) { return kept(SYS_fsync, file); }

int fdatasync(int file) { return kept(SYS_fdatasync, file); }
