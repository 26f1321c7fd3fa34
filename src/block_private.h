/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block_private.h - what the files of block mode share among themselves
 *
 * block.c puts the steps together and undoes them; block_loop.c makes image
 * and device, block_mkfs.c the filesystem on it, block_attach.c the mounts;
 * block_space.c sees to it that what is deleted is trimmed, by block_trim.c,
 * and that no more is written than there is memory for, by block_room.c, as
 * block_decide.c says;
 * block_behind.c finds it all from outside.
 */
#ifndef ZRAMFS_BLOCK_PRIVATE_H
#define ZRAMFS_BLOCK_PRIVATE_H

#include "block.h"

/* One that can be made, and what is right for it in memory. */
struct block_type {
	const char *name;
	const char *program;
	const char *package;	    /* where to find the program */
	const char *const *options; /* of program, NULL-terminated */
	char *const *environment;   /* of program besides, likewise; NULL */
	const char *mount_options;  /* comma-separated */
	/* It is trimmed by us, and only with this option by itself; or NULL. */
	const char *discard_option;
	bool reserves; /* blocks that are for metadata alone */
};

/* Where an error is described, in one line. */
struct block_error {
	char *text;
	size_t size;
};

/* Writes "STEP: ..."; returns -code. code is a positive errno. */
int __attribute__((format(printf, 4, 5)))
block_fail(const struct block_error *error, int code, const char *step,
	   const char *format, ...);

/* For STEP: what was done, and by which option of the user's, if any. */
void block_name_step(char *step, size_t size, const char *what,
		     const char *option, const char *value);

/* NULL when name is none of them. */
const struct block_type *block_type_by_name(const char *name);

/*
 * The loop device that an image in root becomes, size bytes large. root is
 * open in the process keeper too, under the same number.
 */
#define BLOCK_DEVICE_NAME 32
int block_loop_create(int root, pid_t keeper, uint64_t size,
		      char device[BLOCK_DEVICE_NAME],
		      const struct block_error *error);

/* Make a filesystem on device. -ECANCELED: given up. */
int block_mkfs(const struct block_type *type, const struct options *options,
	       const char *device, const struct cancel *cancel,
	       const struct block_error *error);

/*
 * Mounts that are not in any tree yet; a descriptor of the root (O_PATH). When
 * the last such descriptor is closed, the mount is gone.
 */
int block_attach_zramfs(int connection, const struct block_error *error);
int block_attach_device(const struct block_type *type,
			const struct options *options, const char *device,
			const struct block_error *error);

/* Put a mount into the tree. */
int block_attach_at(int mount, const char *mountpoint,
		    const struct block_error *error);

/*
 * Trimming, in a process of its own: of the filesystem on device, if that is
 * mounted at mountpoint, these parts. Its number, or -errno. wait: until it has
 * ended; end: the same, and 0, or what was wrong, a negative errno; -EINTR:
 * killed. It may be killed. anew: also where the filesystem believes that it
 * has been done.
 */
#define BLOCK_RANGES_MAX 256
struct block_range {
	uint64_t start; /* bytes */
	uint64_t length;
};
/*
 * The parts where something is stored; how many. next_stored: the first stored
 * byte at or after offset, or a negative errno.
 */
size_t block_trim_ranges(off_t (*next_stored)(void *context, off_t offset),
			 void *context,
			 struct block_range ranges[BLOCK_RANGES_MAX]);
pid_t block_trim_begin(const char *mountpoint, dev_t device,
		       const struct block_range *ranges, size_t count,
		       bool anew);
void block_trim_wait(pid_t pid);
int block_trim_end(pid_t pid);

/*
 * How much the filesystem on device may take. reserves: it is an ext4 whose
 * clusters are blocks. Set: there is a limit (0: none) and room for so many
 * bytes more than are stored or on their way, of which free are free now.
 */
struct block_room {
	dev_t device;
	char path[64];	   /* of what ext4 reserves; "": nothing to be set */
	uint64_t usual;	   /* reserved without a limit */
	uint64_t reserved; /* now */
	uint64_t limit;
};
void block_room_open(struct block_room *room, dev_t device, bool reserves);
/* What stays with the device is as it was. */
void block_room_close(struct block_room *room);
void block_room_set(struct block_room *room, uint64_t limit, uint64_t room_for,
		    uint64_t free, unsigned int block_size);

#endif
