/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block_behind.c - from a path to the zramfs behind its device
 *
 * path -> its mount -> the mount's source, a loop device -> the name of that
 * device's file -> the directory it is in. In block mode that name leads
 * through the keeper's descriptors; where somebody has set up a loop device on
 * a file in a zramfs, it is the file's path.
 *
 * The kernel keeps the name that it was told first. When the keeper was killed
 * and the worker serves on without it, the same descriptor is the worker's; it
 * is looked for among the processes that are called as ours are.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "block.h"
#include "mountinfo.h"

static int loop_status(const char *device, struct loop_info64 *info,
		       uint64_t *size)
{
	int fd = open(device, O_RDONLY | O_CLOEXEC);
	int error = 0;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, LOOP_GET_STATUS64, info) || ioctl(fd, BLKGETSIZE64, size))
		error = errno == ENOTTY || errno == ENXIO ? -ENOTBLK : -errno;
	close(fd);
	return error;
}

/* -ESRCH: there is not that very file in the directory. */
static int open_directory(const char *directory, const char *file,
			  const struct loop_info64 *info)
{
	struct stat stat_buf;
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno == EACCES || errno == EPERM ? -errno : -ESRCH;
	if (!fstatat(fd, file, &stat_buf, 0) &&
	    stat_buf.st_dev == info->lo_device &&
	    stat_buf.st_ino == info->lo_inode)
		return fd;
	close(fd);
	return -ESRCH;
}

/* Whether a process, by its entry in /proc, is called as ours are. */
static bool is_called_ours(const char *process)
{
	char path[PATH_MAX], name[16] = "";
	int fd;

	if (process[strspn(process, "0123456789")])
		return false;
	snprintf(path, sizeof(path), "/proc/%s/comm", process);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, name, sizeof(name) - 1) < 0)
		name[0] = '\0';
	close(fd);
	return !strncmp(name, "zramfs", strlen("zramfs"));
}

/* As open_directory(), of whichever process has it as this descriptor. */
static int search_processes(const char *descriptor, const char *file,
			    const struct loop_info64 *info)
{
	DIR *processes = opendir("/proc");
	const struct dirent *process;
	char path[PATH_MAX];
	int fd = -ESRCH;

	if (!processes)
		return -errno;
	while (fd < 0 && (process = readdir(processes))) {
		if (!is_called_ours(process->d_name))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/%s", process->d_name,
			 descriptor);
		fd = open_directory(path, file, info);
	}
	closedir(processes);
	return fd;
}

/* The kernel keeps the name as it was told: is it that very file? */
static int find_directory(const struct loop_info64 *info, bool *ours)
{
	char name[LO_NAME_SIZE + 1];
	char *slash, *descriptor;
	int fd;

	snprintf(name, sizeof(name), "%s", (const char *)info->lo_file_name);
	slash = strrchr(name, '/');
	if (!slash || slash == name)
		return -ENOTBLK;
	*slash = '\0';
	*ours = !strncmp(name, "/proc/", strlen("/proc/"));
	fd = open_directory(name, slash + 1, info);
	if (fd != -ESRCH || !*ours)
		return fd;
	descriptor = strchr(name + strlen("/proc/"), '/');
	return descriptor ? search_processes(descriptor + 1, slash + 1, info)
			  : fd;
}

int block_open_behind(const char *path, uint64_t *device_size)
{
	struct mountinfo mount;
	struct loop_info64 info;
	uint64_t size;
	bool ours;
	int error, fd;

	error = mountinfo_of(path, &mount);
	if (error)
		return error == -ENOTSUP ? -ENOTBLK : error;
	if (strncmp(mount.source, "/dev/loop", strlen("/dev/loop")))
		return -ENOTBLK;
	error = loop_status(mount.source, &info, &size);
	if (error)
		return error;
	fd = find_directory(&info, &ours);
	if (fd >= 0 && ours)
		*device_size = size;
	return fd;
}
