/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * codec_speed.c - what a codec alone costs on a file's pages
 *
 *	codec_speed ALG[:LEVEL] FILE [SECONDS]
 *
 * Compresses and decompresses each whole page of FILE (at most 64 MiB of it)
 * over and over in one thread, and prints one JSON object: nanoseconds of CPU
 * time a page, and how small the pages became. Pages that do not become
 * smaller count as they are, as the store keeps them.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "codec/codec.h"

#define BOTH (CODEC_TO_COMPRESS | CODEC_TO_DECOMPRESS)

#define PAGE	  CODEC_PAGE_SIZE
#define PAGES_MAX ((size_t)64 << 20 >> 12)

struct sample {
	unsigned char *pages;
	unsigned char *packed; /* of each page, in a page's room */
	int *length;	       /* PAGE: kept as it is */
	size_t count;
};

struct result {
	double compress_ns;
	double decompress_ns;
	uint64_t packed_bytes;
	uint64_t incompressible;
};

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

static int load(struct sample *sample, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t got;

	sample->pages = malloc(PAGES_MAX * PAGE);
	sample->packed = malloc(PAGES_MAX * PAGE);
	sample->length = malloc(PAGES_MAX * sizeof(*sample->length));
	if (fd < 0 || !sample->pages || !sample->packed || !sample->length)
		return -errno;
	while (used < PAGES_MAX * PAGE) {
		got = read(fd, sample->pages + used, PAGES_MAX * PAGE - used);
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		used += got;
	}
	close(fd);
	sample->count = used / PAGE;
	return sample->count ? 0 : -ENODATA;
}

static void compress_all(struct codec_streams *streams, struct sample *sample,
			 struct result *result)
{
	size_t i;
	int length;

	result->packed_bytes = result->incompressible = 0;
	for (i = 0; i < sample->count; i++) {
		length = codec_compress(streams, sample->pages + i * PAGE, PAGE,
					sample->packed + i * PAGE, PAGE - 1);
		if (length < 0) {
			length = PAGE;
			result->incompressible++;
		}
		sample->length[i] = length;
		result->packed_bytes += length;
	}
}

static int decompress_all(struct codec_streams *streams,
			  const struct sample *sample)
{
	unsigned char page[PAGE];
	const unsigned char *packed;
	size_t i;

	for (i = 0; i < sample->count; i++) {
		packed = sample->packed + i * PAGE;
		if (sample->length[i] == PAGE)
			memcpy(page, sample->pages + i * PAGE, PAGE);
		else if (codec_decompress(streams, streams->choice.ops->id,
					  packed, sample->length[i], page, PAGE))
			return -EIO;
		/* A look at the end only, to leave the time to the codec. */
		if (memcmp(page + PAGE - 64,
			   sample->pages + (i + 1) * PAGE - 64, 64))
			return -EIO;
	}
	return 0;
}

static int measure(struct codec_streams *streams, struct sample *sample,
		   double seconds, struct result *result)
{
	double packing = 0, unpacking = 0, began, end = cpu_seconds() + seconds;
	uint64_t pages = 0;

	do {
		began = cpu_seconds();
		compress_all(streams, sample, result);
		packing += cpu_seconds() - began;
		began = cpu_seconds();
		if (decompress_all(streams, sample))
			return -EIO;
		unpacking += cpu_seconds() - began;
		pages += sample->count;
	} while (cpu_seconds() < end);
	result->compress_ns = packing / pages * 1e9;
	result->decompress_ns = unpacking / pages * 1e9;
	return 0;
}

int main(int argc, char **argv)
{
	struct codec_choice choice;
	struct codec_streams streams;
	struct sample sample = {0};
	struct result result = {0};
	char message[256];
	int error;

	if (argc < 3 || argc > 4) {
		fprintf(stderr,
			"usage: codec_speed ALG[:LEVEL] FILE [SECONDS]\n");
		return 2;
	}
	if (codec_parse(argv[1], &choice, message, sizeof(message))) {
		fprintf(stderr, "codec_speed: %s\n", message);
		return 2;
	}
	error = load(&sample, argv[2]);
	if (!error)
		error = codec_streams_init(&streams, &choice, BOTH, PAGE);
	if (!error)
		error = measure(&streams, &sample,
				argc > 3 ? atof(argv[3]) : 1.0, &result);
	if (error) {
		fprintf(stderr, "codec_speed: %s: %s\n", argv[2],
			strerror(-error));
		return 1;
	}
	printf("{\"pages\": %zu, \"packed_bytes\": %" PRIu64
	       ", \"incompressible\": %" PRIu64
	       ", \"compress_ns\": %.1f, \"decompress_ns\": %.1f}\n",
	       sample.count, result.packed_bytes, result.incompressible,
	       result.compress_ns, result.decompress_ns);
	codec_streams_exit(&streams);
	return 0;
}
