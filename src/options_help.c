/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options_help.c - the text of --help
 *
 * Says what options.c takes, and in brackets what it takes for granted.
 */
#include "options.h"

const char *options_help(void)
{
	return "Keep files in memory, compressed.\n"
	       "\n"
	       "  -o OPT[,OPT...]       options, see below\n"
	       "  -f                    stay in the foreground\n"
	       "  -d                    show each request; implies -f\n"
	       "  -h, --help            show this\n"
	       "  -V, --version         show the version\n"
	       "\n"
	       "Limits (SIZE is in bytes, with k, m, g or t, or N% of RAM):\n"
	       "  size=SIZE             of all files' data; 0: no bound [50%]\n"
	       "  mem_limit=SIZE        of all memory that is taken; 0: no "
	       "limit [0]\n"
	       "  nr_inodes=N           of files and directories; 0: no bound\n"
	       "                        [half as many as RAM has pages]\n"
	       "\n"
	       "The root directory:\n"
	       "  mode=OCTAL            permissions [1777 for root, else 755]\n"
	       "  uid=N, gid=N          owner and group [who mounts]\n"
	       "\n"
	       "How pages are kept:\n"
	       "  alg=lz4[:1 to 65537]  compress fast; higher is faster "
	       "[lz4:1]\n"
	       "  alg=lz4hc[:3 to 12]   slower to write, as fast to read [9]\n"
	       "  alg=lzo               about as lz4\n"
	       "  alg=zstd[:-131072 to 22]\n"
	       "                        a third of the speed, much smaller [3]\n"
	       "  alg=deflate[:0 to 12] as zstd, slower [6]\n"
	       "  alg=none              do not compress\n"
	       "  pool=zsmalloc         pack compressed pages tightly [this]\n"
	       "  pool=z3fold           at most three of them to a page\n"
	       "  pool=zbud             at most two\n"
	       "  dedup=on|off          store equal pages once [on]\n"
	       "  hot=SIZE              of pages not yet compressed; 0: "
	       "compress at once\n"
	       "                        [1/32 of RAM, at most 256m and "
	       "mem_limit/4]\n"
	       "\n"
	       "How it runs:\n"
	       "  threads=N             1 to 256 [CPUs, but 2 to 16]\n"
	       "  writeback             let the kernel gather writes\n"
	       "\n"
	       "Options of FUSE and mount(8) besides:\n"
	       "  ro rw suid nosuid dev nodev exec noexec atime noatime sync\n"
	       "  async dirsync allow_other allow_root default_permissions\n"
	       "  auto_unmount fsname=NAME subtype=NAME max_read=BYTES\n"
	       "  context=, fscontext=, defcontext=, rootcontext=LABEL\n"
	       "Options that are mount(8)'s alone (noauto, nofail, x-..., "
	       "...) are left to it.\n";
}
