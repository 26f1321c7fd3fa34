/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_codec.c - decompress what is no page, compress into what is too small
 *
 * Input: a byte that says which codec and what to do, and then either bytes
 * to decompress, or two bytes of capacity and a page to compress.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "codec/codec.h"
#include "driver.h"

#define BOTH (CODEC_TO_COMPRESS | CODEC_TO_DECOMPRESS)

#define COMPRESS 0x80
#define BOUND	 8192

static struct codec_streams streams[CODEC_COUNT];
static unsigned long pages_read;

static void prepare(void)
{
	static bool prepared;

	if (prepared)
		return;
	for (unsigned int id = 0; id < CODEC_COUNT; id++) {
		struct codec_choice choice = {codec_by_id(id),
					      codec_by_id(id)->level_default};

		PROMISE(codec_streams_init(&streams[id], &choice, BOTH,
					   CODEC_PAGE_SIZE) == 0);
	}
	prepared = true;
}

static void decompress(unsigned int id, const uint8_t *data, size_t size)
{
	static uint8_t *room, *page;
	uint8_t *src;
	int error;

	if (!room) {
		room = driver_guarded(BOUND) + BOUND;
		page = driver_guarded(CODEC_PAGE_SIZE);
	}
	if (size > BOUND)
		size = BOUND;
	src = memcpy(room - size, data, size);
	error = codec_decompress(&streams[id], id, src, size, page,
				 CODEC_PAGE_SIZE);
	PROMISE(error == 0 || error == -EIO);
	pages_read += !error;
}

static void compress(unsigned int id, const uint8_t *data, size_t size)
{
	static uint8_t *room, *page;
	uint8_t back[CODEC_PAGE_SIZE];
	size_t capacity;
	uint8_t *dst;
	int len;

	if (!room) {
		room = driver_guarded(BOUND) + BOUND;
		page = driver_guarded(CODEC_PAGE_SIZE);
	}
	if (size < 2)
		return;
	capacity = ((size_t)data[0] << 8 | data[1]) % (CODEC_PAGE_SIZE + 1);
	size = size - 2 < CODEC_PAGE_SIZE ? size - 2 : CODEC_PAGE_SIZE;
	memset(page, 0, CODEC_PAGE_SIZE);
	memcpy(page, data + 2, size);
	dst = room - capacity;
	len = codec_compress(&streams[id], page, CODEC_PAGE_SIZE, dst,
			     capacity);
	if (len < 0) {
		PROMISE(len == -ENOSPC);
		return;
	}
	PROMISE((size_t)len <= capacity);
	memset(back, 0x55, sizeof(back));
	PROMISE(codec_decompress(&streams[id], id, dst, (size_t)len, back,
				 CODEC_PAGE_SIZE) == 0);
	PROMISE(!memcmp(back, page, CODEC_PAGE_SIZE));
	pages_read++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	prepare();
	if (size == 0)
		return 0;
	if (data[0] & COMPRESS)
		compress(data[0] % CODEC_COUNT, data + 1, size - 1);
	else
		decompress(data[0] % CODEC_COUNT, data + 1, size - 1);
	return 0;
}

#ifndef LIBFUZZER
/* Repeats and randomness, so that there are literals, matches and runs. */
static void fill(uint8_t *page)
{
	size_t at = 0;

	while (at < CODEC_PAGE_SIZE) {
		size_t len = driver_below(driver_below(2) ? 16 : 512) + 1;
		size_t from = at ? driver_below(at) : 0;
		size_t kind = driver_below(4);
		uint8_t byte = (uint8_t)driver_random();

		for (; len && at < CODEC_PAGE_SIZE; len--, at++, from++) {
			if (kind == 0)
				page[at] = (uint8_t)driver_random();
			else if (kind == 1)
				page[at] = byte;
			else
				page[at] = at == from ? 0 : page[from];
		}
	}
}

/* As alg= would make them, at some levels of each codec. */
static void *some_stream(const struct codec_ops *ops)
{
	int levels[] = {ops->level_min(), ops->level_default,
			ops->level_max() < 13 ? ops->level_max() : 13};

	return ops->create(levels[driver_below(3)], BOTH, CODEC_PAGE_SIZE);
}

static void input(unsigned int id, void *stream)
{
	uint8_t data[1 + BOUND], page[CODEC_PAGE_SIZE];
	int len;

	fill(page);
	if (driver_below(8) == 0) {
		/* A multiple of the codecs' number keeps the flag apart. */
		data[0] = (uint8_t)(COMPRESS + id);
		while (data[0] % CODEC_COUNT != id)
			data[0]++;
		data[1] = (uint8_t)driver_random();
		data[2] = (uint8_t)driver_random();
		memcpy(data + 3, page, sizeof(page));
		LLVMFuzzerTestOneInput(data, 3 + sizeof(page));
		return;
	}
	data[0] = (uint8_t)id;
	len = codec_by_id(id)->compress(stream, page, CODEC_PAGE_SIZE, data + 1,
					BOUND);
	PROMISE(len > 0);
	for (int i = 0; i < 16; i++) {
		uint8_t damaged[1 + BOUND];
		size_t size;

		memcpy(damaged, data, 1 + (size_t)len);
		size = driver_damage(damaged + 1, (size_t)len, BOUND);
		LLVMFuzzerTestOneInput(damaged, 1 + size);
	}
}

static void fuzz(unsigned int id, double seconds)
{
	double end = driver_now() + seconds;
	unsigned long rounds = 0;

	pages_read = 0;
	prepare();
	while (driver_now() < end) {
		void *stream = some_stream(codec_by_id(id));

		PROMISE(stream != NULL);
		for (int i = 0; i < 200; i++, rounds++)
			input(id, stream);
		codec_by_id(id)->destroy(stream);
	}
	printf("ok - %s: %lu pages, compressed or damaged; %lu were read\n",
	       codec_by_id(id)->name, rounds, pages_read);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	double seconds = driver_start(argc, argv, 10);

	for (unsigned int id = 0; id < CODEC_COUNT; id++)
		fuzz(id, seconds / CODEC_COUNT);
	for (unsigned int id = 0; id < CODEC_COUNT; id++)
		codec_streams_exit(&streams[id]);
	return 0;
}
#endif
