#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "csystem_cut.h"
#include "csystem_scrypt.h"
#include "csystem_sha256.h"

/// openat2(2) has no wrapper in glibc: opens `path` below `dirfd` and nowhere else, following no symbolic link.
/// Returns a file descriptor, or -1 with errno set.
int csystem_open_beneath(int dirfd, const char *path, int flags, mode_t mode);

/// The status of the name itself below `dirfd`; ELOOP where a symbolic link stands for a folder above it. Returns 0, or -1 with
/// errno set.
int csystem_stat_beneath(int dirfd, const char *path, struct stat *status);

/// Makes `to` share the extents of `from` (FICLONE, an ioctl and so variadic). Returns 0, or -1 with errno set.
int csystem_clone_file(int to, int from);

/// Renames without replacing: fails with EEXIST when `to` is there. Each name is relative to its folder, which may be AT_FDCWD.
int csystem_rename_new(int from_folder, const char *from, int to_folder, const char *to);

/// Swaps two existing names in one step.
int csystem_rename_exchange(const char *from, const char *to);

/// The magic number of the file system that `path` lies on (statfs(2)), or -1 with errno set.
int64_t csystem_filesystem_type(const char *path);

/// fcntl(2) with an integer argument.
int csystem_fcntl(int fd, int command, int argument);

/// Columns of the terminal behind `fd`, or 0 when it is none.
int csystem_terminal_columns(int fd);

/// Whether SIGHUP was ignored when `csystem_catch_interrupts` was called, as under nohup(1): then it stays so.
int csystem_hangup_is_ignored(void);

/// SIGINT, SIGTERM and SIGHUP set a flag that long loops ask for; the second of them ends the process at once.
void csystem_catch_interrupts(void);
/// The signal that was caught, or 0.
int csystem_caught_signal(void);

/// pipe2(2) with O_CLOEXEC, hidden like memmem below: no other thread's child gets the ends. Returns 0, or -1 with errno set.
int csystem_pipe(int ends[2]);

/// Opens a file without a name in `folder` (O_TMPFILE); it is gone when it is closed.
int csystem_open_nameless(const char *folder);

/// memmem(3), which glibc hides behind _GNU_SOURCE: whether `needle` occurs in `bytes`.
int csystem_contains(const void *bytes, size_t count, const void *needle, size_t needle_count);

// Lets the allocator keep what is freed: imports and exports fill buffers of a megabyte over and over, and giving each
// back to the system costs a page fault for every 4 KiB of the next.
void csystem_keep_freed_memory(void);

// Gives it back all the same.
void csystem_return_freed_memory(void);
