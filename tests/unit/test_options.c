/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_options.c - the command line, as a specification that runs
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

static struct options options;
static char message[256];

/* The words of a command line, without the program's name. */
#define PARSE(...) parse((char *[]){"zramfs", __VA_ARGS__, NULL})

static int parse(char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	message[0] = '\0';
	return options_parse(&options, argc, argv, message, sizeof(message));
}

#define ACCEPT(...)                               \
	do {                                      \
		int error_ = PARSE(__VA_ARGS__);  \
		assert_string_equal(message, ""); \
		assert_int_equal(error_, 0);      \
	} while (0)

#define REJECT(expected, ...)                                  \
	do {                                                   \
		assert_int_equal(PARSE(__VA_ARGS__), -EINVAL); \
		assert_string_equal(message, expected);        \
		assert_null(options.fuse_options);             \
	} while (0)

static int release(void **state)
{
	options_release(&options);
	options_release(&options);
	return 0;
}

static uint64_t ram(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) *
	       (uint64_t)sysconf(_SC_PAGESIZE);
}

static void test_defaults(void **state)
{
	uint64_t hot = ram() / 32;

	ACCEPT("/mnt");
	assert_string_equal(options.source, "zramfs");
	assert_string_equal(options.mountpoint, "/mnt");
	assert_int_equal(options.size, ram() / 2);
	assert_int_equal(options.mem_limit, 0);
	assert_int_equal(options.hot, hot < 256 << 20 ? hot : 256 << 20);
	assert_int_equal(options.nr_inodes, sysconf(_SC_PHYS_PAGES) / 2);
	assert_int_equal(options.mode, geteuid() ? 0755 : 01777);
	assert_false(options.mode_given);
	assert_int_equal(options.uid, geteuid());
	assert_int_equal(options.gid, getegid());
	assert_ptr_equal(options.codec.ops, &codec_lz4);
	assert_int_equal(options.codec.level, 1);
	assert_ptr_equal(options.pool, &pool_zsmalloc);
	assert_int_equal(options.cluster_pages, 1);
	assert_true(options.dedup);
	assert_true(options.keeper);
	assert_in_range(options.threads, 2, 16);
	assert_int_equal(options.low_latency,
			 sysconf(_SC_NPROCESSORS_ONLN) <= 8);
	assert_false(options.low_latency_given);
	assert_false(options.writeback);
	assert_false(options.noopen);
	assert_false(options.foreground);
	assert_false(options.debug);
	assert_false(options.help);
	assert_false(options.version);
	assert_string_equal(options.fuse_options, "");
}

static void test_every_option_is_taken(void **state)
{
	ACCEPT("-o",
	       "size=3g,mem_limit=100M,hot=64k,cluster=16k,nr_inodes=10k,mode="
	       "0750,uid=7,"
	       "gid=4294967294,alg=zstd:-5,pool=z3fold,dedup=off,threads=256,"
	       "keeper=off,writeback,noopen,low_latency=on",
	       "/mnt");
	assert_int_equal(options.size, 3ull << 30);
	assert_int_equal(options.mem_limit, 100 << 20);
	assert_int_equal(options.hot, 64 << 10);
	assert_int_equal(options.nr_inodes, 10240);
	assert_int_equal(options.mode, 0750);
	assert_true(options.mode_given);
	assert_int_equal(options.uid, 7);
	assert_int_equal(options.gid, 4294967294u);
	assert_ptr_equal(options.codec.ops, &codec_zstd);
	assert_int_equal(options.codec.level, -5);
	assert_ptr_equal(options.pool, &pool_z3fold);
	assert_int_equal(options.cluster_pages, 4);
	assert_false(options.dedup);
	assert_false(options.keeper);
	assert_int_equal(options.threads, 256);
	assert_true(options.low_latency);
	assert_true(options.low_latency_given);
	assert_true(options.writeback);
	assert_true(options.noopen);
}

static void test_every_pool_is_taken(void **state)
{
	ACCEPT("/mnt", "-opool=zsmalloc");
	assert_ptr_equal(options.pool, &pool_zsmalloc);
	options_release(&options);
	ACCEPT("/mnt", "-opool=z3fold");
	assert_ptr_equal(options.pool, &pool_z3fold);
	options_release(&options);
	ACCEPT("/mnt", "-opool=zbud");
	assert_ptr_equal(options.pool, &pool_zbud);
}

static void test_zero_means_none(void **state)
{
	ACCEPT("/mnt", "-osize=0,mem_limit=0,nr_inodes=0,hot=0,uid=0,mode=0");
	assert_int_equal(options.size, 0);
	assert_int_equal(options.mem_limit, 0);
	assert_int_equal(options.nr_inodes, 0);
	assert_int_equal(options.hot, 0);
	assert_int_equal(options.uid, 0);
	assert_int_equal(options.mode, 0);
	assert_true(options.mode_given);
}

static void test_hot_follows_mem_limit_unless_given(void **state)
{
	ACCEPT("/mnt", "-o", "mem_limit=4m");
	assert_int_equal(options.hot, 1 << 20);
	options_release(&options);
	ACCEPT("/mnt", "-o", "hot=8m,mem_limit=4m");
	assert_int_equal(options.hot, 8 << 20);
}

static void test_arguments_in_any_order(void **state)
{
	/* As mount.fuse3 calls it. */
	ACCEPT("disk", "/mnt", "-o", "rw,dev,suid,size=1m");
	assert_string_equal(options.source, "disk");
	assert_string_equal(options.mountpoint, "/mnt");
	assert_int_equal(options.size, 1 << 20);
	assert_string_equal(options.fuse_options, "rw,dev,suid");
	options_release(&options);
	ACCEPT("-f", "-osize=2m", "-o", "alg=lzo", "/mnt", "-o", "size=3m");
	assert_true(options.foreground);
	assert_int_equal(options.size, 3 << 20);
	assert_ptr_equal(options.codec.ops, &codec_lzo);
	options_release(&options);
	/* Letters together; the last may take what is glued to it. */
	ACCEPT("-fosize=5", "/mnt");
	assert_true(options.foreground);
	assert_int_equal(options.size, 5);
	options_release(&options);
	ACCEPT("-d", "-", "--", "-o");
	assert_true(options.foreground);
	assert_true(options.debug);
	assert_string_equal(options.source, "-");
	assert_string_equal(options.mountpoint, "-o");
}

static void test_help_and_version_need_nothing_else(void **state)
{
	ACCEPT("--help");
	assert_true(options.help);
	options_release(&options);
	ACCEPT("-h", "-o", "nonsense");
	assert_true(options.help);
	options_release(&options);
	ACCEPT("--version");
	assert_true(options.version);
	options_release(&options);
	ACCEPT("/mnt", "-fV");
	assert_true(options.version);
}

static void test_help_names_every_option(void **state)
{
	static const char *const names[] = {
		"size=",       "mem_limit=", "hot=",	  "nr_inodes=",
		"mode=",       "uid=",	     "gid=",	  "alg=lz4[",
		"alg=lz4hc[",  "alg=lzo",    "=zstd[",	  "=deflate[",
		"alg=none",    "pool=",	     "dedup=",	  "-f ",
		"threads=",    "writeback",  "block=",	  "mkfs_opts=",
		"mount_opts=", "--help",     "--version", "low_latency=",
		"noopen",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strstr(options_help(), names[i]))
			fail_msg("--help does not tell of %s", names[i]);
	}
}

/* Lines fit a terminal. */
static void test_help_lines_are_short(void **state)
{
	const char *line = options_help();

	while (*line) {
		size_t len = strcspn(line, "\n");

		assert_in_range(len, 0, 79);
		line += len;
		assert_int_equal(*line, '\n');
		line++;
	}
}

static void test_mount_options_are_passed_on(void **state)
{
	ACCEPT("/mnt", "-o",
	       "ro,nosuid,nodev,noexec,noatime,sync,dirsync,allow_other,"
	       "size=1g,default_permissions,auto_unmount,max_read=65536",
	       "-o", "fsname=a\\,b,subtype=x,context=system_u:object_r:tmp_t");
	assert_string_equal(
		options.fuse_options,
		"ro,nosuid,nodev,noexec,noatime,sync,dirsync,allow_other,"
		"default_permissions,auto_unmount,max_read=65536,"
		"fsname=a\\,b,subtype=x,context=system_u:object_r:tmp_t");
}

static void test_options_for_mount_alone_are_dropped(void **state)
{
	ACCEPT("/mnt", "-o",
	       "defaults,noauto,user,user=joe,nofail,_netdev,x-systemd."
	       "automount"
	       ",X-mount.mkdir=755,comment=hello,relatime,,exec,");
	assert_string_equal(options.fuse_options, "exec");
}

static void test_options_libfuse_would_refuse(void **state)
{
	REJECT("'keep=on' is no option of zramfs, FUSE or mount: see zramfs "
	       "--help",
	       "/mnt", "-o", "keep=on");
	REJECT("'Size=1g' is no option of zramfs, FUSE or mount: see zramfs "
	       "--help",
	       "/mnt", "-oSize=1g");
	REJECT("'=' is no option of zramfs, FUSE or mount: see zramfs --help",
	       "/mnt", "-o=");
	REJECT("'fd=3' is no option of zramfs, FUSE or mount: see zramfs "
	       "--help",
	       "/mnt", "-ofd=3");
	REJECT("'lazytime=1' is no option of zramfs, FUSE or mount: see zramfs "
	       "--help",
	       "/mnt", "-olazytime=1");
	REJECT("strictatime is not possible with FUSE: leave it out, or use "
	       "noatime",
	       "/mnt", "-o", "rw,strictatime");
	REJECT("ro=1: ro takes no value, use ro", "/mnt", "-oro=1");
	REJECT("fsname needs a value: use fsname=VALUE", "/mnt", "-ofsname");
	REJECT("subtype needs a value: use subtype=VALUE", "/mnt",
	       "-osubtype=");
}

#define SIZES                                                               \
	"a whole number, of bytes or with k, m, g, t or % (of RAM) behind " \
	"it; 0 for "

static void test_bad_sizes(void **state)
{
	static char *const bad[] = {
		"size=1x",  "size=k",	 "size=-1",   "size=+1",  "size= 1",
		"size=1 ",  "size=0x10", "size=1.5g", "size=1gb", "size=1kk",
		"size=1%%", "size=%",	 "size=1%k",  "size=1e3", "size=1\\,0",
	};
	char expected[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		snprintf(expected, sizeof(expected), "%s%s", bad[i],
			 " is not possible: use " SIZES "no bound");
		REJECT(expected, "/mnt", "-o", bad[i]);
	}
	REJECT("size needs a value: use " SIZES "no bound", "/mnt", "-osize");
	REJECT("size needs a value: use " SIZES "no bound", "/mnt", "-osize=");
	REJECT("size=9223372036854775808 is out of range: use at most 8388607t",
	       "/mnt", "-osize=9223372036854775808");
	REJECT("size=99999999999999999999 is out of range: use at most "
	       "8388607t",
	       "/mnt", "-osize=99999999999999999999");
	REJECT("mem_limit=8388608t is out of range: use at most 8388607t",
	       "/mnt", "-omem_limit=8388608t");
	REJECT("nr_inodes=8388608t is out of range: use at most 8388607t",
	       "/mnt", "-onr_inodes=8388608t");
}

/* Of data there may be more than memory, compressed, but not of hot pages. */
static void test_percentages(void **state)
{
	ACCEPT("/mnt", "-osize=150%,mem_limit=101%,hot=100%");
	assert_int_equal(options.size, (unsigned __int128)ram() * 150 / 100);
	assert_int_equal(options.hot, ram());
	options_release(&options);
	REJECT("hot=101% is out of range: use at most 100%", "/mnt",
	       "-ohot=101%");
	REJECT("hot=18446744073709551615% is out of range: use at most 100%",
	       "/mnt", "-ohot=18446744073709551615%");
}

static void test_bad_values(void **state)
{
	REJECT("remount is not for zramfs to do: use mount -i -o remount,..., "
	       "and zramfsctl set for limits",
	       "/mnt", "-oremount,ro");
	REJECT("nr_inodes=5% is not possible: use a whole number, k, m, g or "
	       "t may follow; 0 for no bound",
	       "/mnt", "-onr_inodes=5%");
	REJECT("mode=888 is not possible: use an octal number from 0 to 7777",
	       "/mnt", "-omode=888");
	REJECT("mode=10000 is out of range: use an octal number from 0 to 7777",
	       "/mnt", "-omode=10000");
	REJECT("mode=u+w is not possible: use an octal number from 0 to 7777",
	       "/mnt", "-omode=u+w");
	REJECT("uid=root is not possible: use a number from 0 to 4294967294",
	       "/mnt", "-ouid=root");
	REJECT("gid=4294967295 is out of range: use a number from 0 to "
	       "4294967294",
	       "/mnt", "-ogid=4294967295");
	REJECT("gid=-1 is not possible: use a number from 0 to 4294967294",
	       "/mnt", "-ogid=-1");
	REJECT("level 99 of zstd is out of range: -131072 to 22", "/mnt",
	       "-oalg=zstd:99");
	REJECT("alg needs a value: use lz4, lz4hc, lzo, zstd, deflate or none",
	       "/mnt", "-oalg=");
	REJECT("pool=slab is not possible: use zsmalloc, z3fold or zbud",
	       "/mnt", "-opool=slab");
	REJECT("cluster=12k is not possible: use 4k, 8k, 16k, 32k, 64k or 128k",
	       "/mnt", "-ocluster=12k");
	REJECT("cluster=0 is out of range: use 4k, 8k, 16k, 32k, 64k or 128k",
	       "/mnt", "-ocluster=0");
	REJECT("cluster=8k is not possible with alg=none, which compresses "
	       "nothing: leave it out",
	       "/mnt", "-ocluster=8k,alg=none");
	REJECT("cluster=128k needs a hot tier, where pages wait to be "
	       "compressed "
	       "together: use hot=512k or more",
	       "/mnt", "-ocluster=128k,hot=511k");
	REJECT("keeper=yes is not possible: use on or off", "/mnt",
	       "-okeeper=yes");
	REJECT("low_latency=1 is not possible: use on or off", "/mnt",
	       "-olow_latency=1");
	REJECT("dedup=yes is not possible: use on or off", "/mnt",
	       "-odedup=yes");
	REJECT("threads=0 is out of range: use a whole number from 1 to 256",
	       "/mnt", "-othreads=0");
	REJECT("threads=257 is out of range: use a whole number from 1 to 256",
	       "/mnt", "-othreads=257");
	REJECT("threads=2k is not possible: use a whole number from 1 to 256",
	       "/mnt", "-othreads=2k");
	REJECT("writeback=on: writeback takes no value, use writeback", "/mnt",
	       "-owriteback=on");
	REJECT("noopen=on: noopen takes no value, use noopen", "/mnt",
	       "-onoopen=on");
}

static void test_block(void **state)
{
	char most[64];

	ACCEPT("/mnt", "-osize=1g,block=ext4,mkfs_opts=-O a\\,b -N 7,"
		       "mount_opts=noatime\\,commit=9,nosuid");
	assert_string_equal(options.block, "ext4");
	assert_string_equal(options.mkfs_opts, "-O a,b -N 7");
	assert_string_equal(options.mount_opts, "noatime,commit=9");
	assert_string_equal(options.fuse_options, "nosuid");
	options_release(&options);
	ACCEPT("/mnt", "-oblock=xfs,allow_other,default_permissions");
	options_release(&options);
	REJECT("block=zfs is not possible: use ext4, xfs or btrfs", "/mnt",
	       "-oblock=zfs");
	REJECT("size=0 is not possible with block=: a device has a size",
	       "/mnt", "-osize=0,block=ext4");
	snprintf(most, sizeof(most), "-osize=%llu,block=xfs",
		 (unsigned long long)ram() * 1024);
	ACCEPT("/mnt", most);
	options_release(&options);
	snprintf(most, sizeof(most), "-oblock=xfs,size=%llu",
		 (unsigned long long)ram() * 1024 + 1);
	assert_int_equal(PARSE("/mnt", most), -EINVAL);
	snprintf(most, sizeof(most), "use at most %llug, 1024 times",
		 (unsigned long long)(ram() * 1024 >> 30));
	assert_non_null(strstr(message, most));
	REJECT("mkfs_opts= needs block=: use block=ext4, xfs or btrfs", "/mnt",
	       "-omkfs_opts=-q");
	REJECT("mount_opts= needs block=: use block=ext4, xfs or btrfs", "/mnt",
	       "-omount_opts=ro");
	REJECT("writeback is not possible with block=: leave it out", "/mnt",
	       "-oblock=ext4,writeback");
	REJECT("noopen is not possible with block=: leave it out", "/mnt",
	       "-oblock=ext4,noopen");
	REJECT("nr_inodes= is not possible with block=: leave it out", "/mnt",
	       "-onr_inodes=5,block=ext4");
	REJECT("max_read= is not possible with block=: leave it out", "/mnt",
	       "-oblock=ext4,max_read=4096");
}

static void test_bad_arguments(void **state)
{
	static const char no_mountpoint[] =
		"no mountpoint given: use zramfs MOUNTPOINT [-o OPT[,OPT...]]";

	REJECT(no_mountpoint, "-f");
	REJECT(no_mountpoint, "");
	REJECT(no_mountpoint, "source", "");
	REJECT("'c' is one argument too many: use zramfs [SOURCE] MOUNTPOINT",
	       "a", "b", "c");
	REJECT("-o needs a list of options, as in -o size=1g", "/mnt", "-o");
	REJECT("unknown option '-x' in -fx: use -o, -f, -d, -h or -V", "/mnt",
	       "-fx");
	REJECT("unknown option '--size=1g': use -o OPT=VALUE, --help or "
	       "--version",
	       "/mnt", "--size=1g");
}

static void test_sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{"0", 0},
		{"1", 1},
		{"007", 7},
		{"1k", 1 << 10},
		{"1K", 1 << 10},
		{"2m", 2 << 20},
		{"2M", 2 << 20},
		{"3g", 3ull << 30},
		{"3G", 3ull << 30},
		{"4t", 4ull << 40},
		{"4T", 4ull << 40},
		{"9223372036854775807", INT64_MAX},
		{"8388607t", 8388607ull << 40},
	};
	uint64_t bytes;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(options_parse_size(good[i].text, &bytes), 0);
		assert_int_equal(bytes, good[i].bytes);
	}
	assert_int_equal(options_parse_size("100%", &bytes), 0);
	assert_int_equal(bytes, ram());
	assert_int_equal(options_parse_size("25%", &bytes), 0);
	assert_int_equal(bytes, ram() / 4);
	assert_int_equal(options_parse_size("300%", &bytes), 0);
	assert_int_equal(bytes, 3 * ram());
	assert_int_equal(options_parse_size("", &bytes), -EINVAL);
	assert_int_equal(options_parse_size("1p", &bytes), -EINVAL);
	assert_int_equal(options_parse_size("8388608t", &bytes), -ERANGE);
}

static void test_messages_are_one_printable_line(void **state)
{
	REJECT("'a?b?[1mc' is no option of zramfs, FUSE or mount: see zramfs "
	       "--help",
	       "/mnt", "-o", "a\nb\033[1mc");
	REJECT("uid=1?? is not possible: use a number from 0 to 4294967294",
	       "/mnt", "-o", "uid=1\r\177");
}

/* However long the words are, the message ends in time. */
static void test_long_words(void **state)
{
	static char word[100000];

	memset(word, 'x', sizeof(word) - 1);
	assert_int_equal(PARSE("/mnt", "-o", word), -EINVAL);
	assert_true(strlen(message) < sizeof(message));
	memcpy(word, "size=", 5);
	assert_int_equal(PARSE("/mnt", "-o", word), -EINVAL);
	assert_non_null(strstr(message, ": use a whole number"));
	memcpy(word, "fsname", 6);
	word[6] = '=';
	ACCEPT("/mnt", "-o", word);
	assert_string_equal(options.fuse_options, word);
}

#define TEST(name) cmocka_unit_test_teardown(name, release)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_defaults),
		TEST(test_every_option_is_taken),
		TEST(test_every_pool_is_taken),
		TEST(test_zero_means_none),
		TEST(test_hot_follows_mem_limit_unless_given),
		TEST(test_arguments_in_any_order),
		TEST(test_help_and_version_need_nothing_else),
		TEST(test_help_names_every_option),
		TEST(test_help_lines_are_short),
		TEST(test_mount_options_are_passed_on),
		TEST(test_options_for_mount_alone_are_dropped),
		TEST(test_options_libfuse_would_refuse),
		TEST(test_bad_sizes),
		TEST(test_percentages),
		TEST(test_bad_values),
		TEST(test_block),
		TEST(test_bad_arguments),
		TEST(test_sizes),
		TEST(test_messages_are_one_printable_line),
		TEST(test_long_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
