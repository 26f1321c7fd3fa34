/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block_loop.c - the image, and the loop device on it
 *
 * The device reads and writes the image past the page cache, in blocks of a
 * page: the store's pages are as large, so none is ever patched, and nothing
 * is in memory twice. It clears itself when its last user is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "block_private.h"

#define BLOCK_SIZE 4096

/* Others look for free devices too, and may be quicker. */
#define ATTEMPTS 64

static const char image_step[] = "making the image";
static const char loop_step[] = "setting up a loop device";

/*
 * Seen from outside it lies in the root of nowhere. mkfs.btrfs goes by its
 * name to tell whether two devices are the same, so it has to be one's own.
 */
#define IMAGE_NAME_SIZE 32

static void name_image(char name[IMAGE_NAME_SIZE], pid_t keeper)
{
	snprintf(name, IMAGE_NAME_SIZE, "zramfs-%d", (int)keeper);
}

static int create_image(int root, const char *name, uint64_t size,
			const struct block_error *error)
{
	int fd = openat(root, name,
			O_RDWR | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0600);

	if (fd < 0)
		return block_fail(error, errno, image_step, "%s",
				  errno == EEXIST ? "a worker died while it "
						    "made the filesystem"
						  : strerror(errno));
	if (ftruncate(fd, size / BLOCK_SIZE * BLOCK_SIZE)) {
		int code = errno;

		close(fd);
		return block_fail(error, code, image_step, "%llu bytes: %s",
				  (unsigned long long)size, strerror(code));
	}
	return fd;
}

/*
 * The file name that the kernel keeps with the device is a way back to the
 * zramfs, for block_open_behind().
 */
static void describe(struct loop_config *config, int root, pid_t keeper,
		     const char *name, int image)
{
	memset(config, 0, sizeof(*config));
	config->fd = image;
	config->block_size = BLOCK_SIZE;
	config->info.lo_flags = LO_FLAGS_DIRECT_IO | LO_FLAGS_AUTOCLEAR;
	snprintf((char *)config->info.lo_file_name,
		 sizeof(config->info.lo_file_name), "/proc/%d/fd/%d/%s",
		 (int)keeper, root, name);
}

/* A free device becomes ours: its descriptor; or -errno. */
static int configure_free(int control, const struct loop_config *config,
			  char device[BLOCK_DEVICE_NAME])
{
	int number = ioctl(control, LOOP_CTL_GET_FREE);
	int fd, error;

	if (number < 0)
		return -errno;
	snprintf(device, BLOCK_DEVICE_NAME, "/dev/loop%d", number);
	fd = open(device, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!ioctl(fd, LOOP_CONFIGURE, config))
		return fd;
	error = errno;
	close(fd);
	return -error;
}

/* Without direct I/O, all would be in memory twice: better none at all. */
static int check_direct(int fd, const struct block_error *error)
{
	struct loop_info64 info;

	if (ioctl(fd, LOOP_GET_STATUS64, &info))
		return block_fail(error, errno, loop_step, "%s",
				  strerror(errno));
	if (!(info.lo_flags & LO_FLAGS_DIRECT_IO))
		return block_fail(error, EOPNOTSUPP, loop_step,
				  "the kernel gives it no direct I/O");
	return 0;
}

static int create_device(const struct loop_config *config,
			 char device[BLOCK_DEVICE_NAME],
			 const struct block_error *error)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int attempts = ATTEMPTS, fd, status;

	if (control < 0)
		return block_fail(error, errno, loop_step,
				  "/dev/loop-control: %s%s", strerror(errno),
				  errno == ENOENT || errno == ENODEV
					  ? "; is the loop module loaded? "
					    "(modprobe loop)"
					  : "");
	do
		fd = configure_free(control, config, device);
	while ((fd == -EBUSY || fd == -ENXIO) && --attempts);
	close(control);
	if (fd < 0)
		return block_fail(error, -fd, loop_step, "%s", strerror(-fd));
	status = check_direct(fd, error);
	if (status) {
		close(fd);
		return status;
	}
	return fd;
}

int block_loop_create(int root, pid_t keeper, uint64_t size,
		      char device[BLOCK_DEVICE_NAME],
		      const struct block_error *error)
{
	char name[IMAGE_NAME_SIZE];
	struct loop_config config;
	int image, fd;

	name_image(name, keeper);
	image = create_image(root, name, size, error);
	if (image < 0)
		return image;
	describe(&config, root, keeper, name, image);
	fd = create_device(&config, device, error);
	/* The device has it open now. */
	close(image);
	return fd;
}
