/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_request.c - raw requests and replies, as request.h promises
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/fuse.h>
#include <string.h>

#include "request.h"

#define DIRECT_IO_ALLOW_MMAP (1ULL << 36)

static struct request_agreement agreement;
static struct request request = {.agreement = &agreement};
static _Alignas(8) char message[1024];

static struct fuse_in_header *header(void)
{
	return (struct fuse_in_header *)message;
}

/* A message of an opcode with a body; returns what libfuse will see. */
static void *receive(uint32_t opcode, const void *body, size_t size,
		     size_t *length)
{
	memset(message, 0, sizeof(message));
	*length = sizeof(struct fuse_in_header) + size;
	header()->opcode = opcode;
	header()->len = *length;
	header()->unique = 77;
	memcpy(header() + 1, body, size);
	return request_receive(&request, message, length);
}

static void receive_init(uint64_t offered)
{
	struct fuse_init_in in = {
		.flags = (uint32_t)offered | FUSE_INIT_EXT,
		.flags2 = offered >> 32,
	};
	size_t length;

	assert_ptr_equal(receive(FUSE_INIT, &in, sizeof(in), &length), message);
}

static void reply(void *body, size_t size, int error)
{
	struct fuse_out_header out = {
		.len = sizeof(out) + size,
		.unique = 77,
		.error = error,
	};
	struct iovec iov[2] = {{&out, sizeof(out)}, {body, size}};

	request_adjust_reply(&request, iov, size ? 2 : 1);
	assert_int_equal(request.reply_length, sizeof(out) + size);
}

static void test_agrees_on_what_is_offered(void **state)
{
	struct fuse_init_out out = {.flags = FUSE_INIT_EXT};

	receive_init(FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT |
		     DIRECT_IO_ALLOW_MMAP);
	reply(&out, sizeof(out), 0);
	assert_int_equal(out.flags, FUSE_INIT_EXT | FUSE_HANDLE_KILLPRIV_V2 |
					    FUSE_SETXATTR_EXT);
	assert_int_equal(out.flags2, DIRECT_IO_ALLOW_MMAP >> 32);
}

static void test_agrees_on_nothing_else(void **state)
{
	struct fuse_init_out out = {.flags = FUSE_INIT_EXT};

	receive_init(FUSE_POSIX_LOCKS);
	reply(&out, sizeof(out), 0);
	assert_int_equal(out.flags, FUSE_INIT_EXT);
	assert_int_equal(out.flags2, 0);
	assert_false(agreement.setxattr_ext);
}

static void test_leaves_a_failed_reply_alone(void **state)
{
	struct fuse_init_out out = {0};

	receive_init(FUSE_HANDLE_KILLPRIV_V2);
	reply(&out, sizeof(out), -5);
	assert_int_equal(out.flags, 0);
}

static void test_tells_kill_priv(void **state)
{
	struct fuse_write_in write = {.write_flags = FUSE_WRITE_KILL_SUIDGID};
	struct fuse_setattr_in setattr = {.valid = FATTR_KILL_SUIDGID};
	struct fuse_open_in open = {.open_flags = FUSE_OPEN_KILL_SUIDGID};
	size_t length;

	receive(FUSE_WRITE, &write, sizeof(write), &length);
	assert_true(request.kill_priv);
	receive(FUSE_SETATTR, &setattr, sizeof(setattr), &length);
	assert_true(request.kill_priv);
	receive(FUSE_OPEN, &open, sizeof(open), &length);
	assert_true(request.kill_priv);

	memset(&write, 0, sizeof(write));
	receive(FUSE_WRITE, &write, sizeof(write), &length);
	assert_false(request.kill_priv);
}

static void test_shows_tmpfile_as_create(void **state)
{
	struct fuse_create_in create = {.mode = 0644};
	size_t length;

	receive(FUSE_TMPFILE, &create, sizeof(create), &length);
	assert_int_equal(header()->opcode, FUSE_CREATE);
	assert_int_equal(request.opcode, FUSE_TMPFILE);
}

struct setxattr {
	struct fuse_setxattr_in in;
	char text[12]; /* "user.a", NUL, value */
};

static void test_shortens_setxattr(void **state)
{
	struct setxattr setxattr = {
		.in = {.size = 5,
		       .flags = 1,
		       .setxattr_flags = FUSE_SETXATTR_ACL_KILL_SGID},
		.text = "user.a\0value",
	};
	const struct fuse_in_header *seen;
	const struct fuse_setxattr_in *in;
	struct fuse_init_out out = {0};
	size_t length;

	receive_init(FUSE_SETXATTR_EXT);
	reply(&out, sizeof(out), 0);

	seen = receive(FUSE_SETXATTR, &setxattr, sizeof(setxattr), &length);
	in = (const void *)(seen + 1);
	assert_true(request.kill_priv);
	assert_int_equal(seen->opcode, FUSE_SETXATTR);
	assert_int_equal(seen->unique, 77);
	assert_int_equal(seen->len, length);
	assert_int_equal(length, sizeof(*seen) + FUSE_COMPAT_SETXATTR_IN_SIZE +
					 sizeof(setxattr.text));
	assert_int_equal(in->size, 5);
	assert_int_equal(in->flags, 1);
	assert_memory_equal((const char *)in + FUSE_COMPAT_SETXATTR_IN_SIZE,
			    setxattr.text, sizeof(setxattr.text));
}

static void test_leaves_short_setxattr_alone(void **state)
{
	char body[20] = {0};
	struct fuse_init_out out = {0};
	size_t length;

	receive_init(0);
	reply(&out, sizeof(out), 0);
	assert_ptr_equal(receive(FUSE_SETXATTR, body, sizeof(body), &length),
			 message);
	assert_false(request.kill_priv);
}

static void test_opens_for_parallel_writes(void **state)
{
	struct fuse_open_in in = {0};
	struct fuse_open_out out = {.open_flags = FOPEN_DIRECT_IO};
	size_t length;

	receive(FUSE_OPEN, &in, sizeof(in), &length);
	reply(&out, sizeof(out), 0);
	assert_int_equal(out.open_flags, FOPEN_DIRECT_IO);

	receive(FUSE_OPEN, &in, sizeof(in), &length);
	request.parallel_direct_writes = true;
	reply(&out, sizeof(out), 0);
	assert_int_equal(out.open_flags,
			 FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES);
}

static void test_creates_for_parallel_writes(void **state)
{
	static const uint32_t opcodes[] = {FUSE_CREATE, FUSE_TMPFILE};
	struct fuse_create_in in = {0};
	size_t length, i;

	for (i = 0; i < 2; i++) {
		struct {
			struct fuse_entry_out entry;
			struct fuse_open_out open;
		} out = {0}, want = {0};

		want.open.open_flags = FOPEN_PARALLEL_DIRECT_WRITES;
		receive(opcodes[i], &in, sizeof(in), &length);
		request.parallel_direct_writes = true;
		reply(&out, sizeof(out), 0);
		assert_memory_equal(&out, &want, sizeof(out));
	}
}

static void test_counts_empty_replies(void **state)
{
	size_t length;

	receive(FUSE_UNLINK, "name", 5, &length);
	reply(NULL, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agrees_on_what_is_offered),
		cmocka_unit_test(test_agrees_on_nothing_else),
		cmocka_unit_test(test_leaves_a_failed_reply_alone),
		cmocka_unit_test(test_tells_kill_priv),
		cmocka_unit_test(test_shows_tmpfile_as_create),
		cmocka_unit_test(test_shortens_setxattr),
		cmocka_unit_test(test_leaves_short_setxattr_alone),
		cmocka_unit_test(test_opens_for_parallel_writes),
		cmocka_unit_test(test_creates_for_parallel_writes),
		cmocka_unit_test(test_counts_empty_replies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
