/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * null_names.c - see null_names.h
 *
 * Entries hang in a hash table by directory and name, and in a list for each
 * directory, in the order of their cursors. Cursors only ever grow, so a
 * listing that is gone on with later misses nothing that stayed.
 */
#include "null_names.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUCKETS (1u << 16)

/* Cursors of "." and ".."; entries' begin after them. */
enum {
	CURSOR_SELF = 1,
	CURSOR_PARENT,
	CURSOR_FIRST
};

struct entry {
	struct entry *next_in_bucket;
	struct entry *previous, *next; /* in the directory */
	struct node *directory;
	struct node *node;
	uint64_t cursor;
	char name[];
};

struct node {
	_Atomic uint64_t size; /* bytes; the rest is under the lock */
	struct stat attr;
	uint64_t lookups;
	struct node *parent; /* of a directory */
	struct entry *first, *last;
	uint64_t next_cursor;
	char *target;
};

/* Guards all that follows, and every node but its size. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *buckets[BUCKETS];
static uint64_t next_ino = 1;
static uint64_t nodes;

/* FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/ */
static struct entry **bucket_of(const struct node *directory, const char *name)
{
	uint64_t hash = 0xcbf29ce484222325ULL ^ directory->attr.st_ino;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3ULL;
	return &buckets[(hash ^ hash >> 32) % BUCKETS];
}

static struct entry *find(const struct node *directory, const char *name)
{
	struct entry *entry = *bucket_of(directory, name);

	while (entry &&
	       (entry->directory != directory || strcmp(entry->name, name)))
		entry = entry->next_in_bucket;
	return entry;
}

static struct node *new_node(const struct stat *attr, const char *target)
{
	struct node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	if (target) {
		node->target = strdup(target);
		if (!node->target) {
			free(node);
			return NULL;
		}
		atomic_store_explicit(&node->size, strlen(target),
				      memory_order_relaxed);
	}
	node->attr.st_mode = attr->st_mode;
	node->attr.st_uid = attr->st_uid;
	node->attr.st_gid = attr->st_gid;
	node->attr.st_rdev = attr->st_rdev;
	node->attr.st_blksize = 4096;
	node->attr.st_ino = next_ino++;
	clock_gettime(CLOCK_REALTIME_COARSE, &node->attr.st_mtim);
	node->attr.st_ctim = node->attr.st_atim = node->attr.st_mtim;
	node->next_cursor = CURSOR_FIRST;
	nodes++;
	return node;
}

static void free_if_unused(struct node *node)
{
	if (node->attr.st_nlink || node->lookups)
		return;
	free(node->target);
	free(node);
	nodes--;
}

static int add_entry(struct node *directory, const char *name,
		     struct node *node)
{
	struct entry **bucket = bucket_of(directory, name);
	struct entry *entry = malloc(sizeof(*entry) + strlen(name) + 1);

	if (!entry)
		return -ENOMEM;
	strcpy(entry->name, name);
	entry->directory = directory;
	entry->node = node;
	entry->cursor = directory->next_cursor++;
	entry->next_in_bucket = *bucket;
	*bucket = entry;
	entry->next = NULL;
	entry->previous = directory->last;
	*(directory->last ? &directory->last->next : &directory->first) = entry;
	directory->last = entry;
	node->attr.st_nlink++;
	if (S_ISDIR(node->attr.st_mode)) {
		node->parent = directory;
		directory->attr.st_nlink++;
	}
	return 0;
}

static void take_entry(struct entry *entry)
{
	struct node *directory = entry->directory, *node = entry->node;
	struct entry **at = bucket_of(directory, entry->name);

	while (*at != entry)
		at = &(*at)->next_in_bucket;
	*at = entry->next_in_bucket;
	*(entry->previous ? &entry->previous->next : &directory->first) =
		entry->next;
	*(entry->next ? &entry->next->previous : &directory->last) =
		entry->previous;
	node->attr.st_nlink--;
	if (S_ISDIR(node->attr.st_mode))
		directory->attr.st_nlink--;
	free(entry);
}

static int remove_entry(struct entry *entry)
{
	struct node *node = entry->node;

	if (node->first)
		return -ENOTEMPTY;
	take_entry(entry);
	/* A directory's link to itself goes with its last name. */
	if (S_ISDIR(node->attr.st_mode))
		node->attr.st_nlink--;
	free_if_unused(node);
	return 0;
}

struct node *names_start(mode_t mode)
{
	struct stat attr = {.st_mode = S_IFDIR | mode};
	struct node *root = new_node(&attr, NULL);

	if (!root)
		return NULL;
	root->attr.st_nlink = 2;
	root->parent = root;
	return root;
}

uint64_t names_size(const struct node *node)
{
	return atomic_load_explicit(&node->size, memory_order_relaxed);
}

void names_grow(struct node *node, uint64_t size)
{
	uint64_t old = names_size(node);

	while (old < size &&
	       !atomic_compare_exchange_weak_explicit(&node->size, &old, size,
						      memory_order_relaxed,
						      memory_order_relaxed))
		;
}

static void get_attr(const struct node *node, struct stat *attr)
{
	*attr = node->attr;
	attr->st_size = names_size(node);
	attr->st_blocks = (attr->st_size + 511) / 512;
}

void names_attr(struct node *node, struct stat *attr)
{
	pthread_mutex_lock(&lock);
	get_attr(node, attr);
	pthread_mutex_unlock(&lock);
}

static void set_times(struct node *node, int valid, const struct stat *attr)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	if (valid & FUSE_SET_ATTR_ATIME)
		node->attr.st_atim =
			valid & FUSE_SET_ATTR_ATIME_NOW ? now : attr->st_atim;
	if (valid & FUSE_SET_ATTR_MTIME)
		node->attr.st_mtim =
			valid & FUSE_SET_ATTR_MTIME_NOW ? now : attr->st_mtim;
	node->attr.st_ctim = now;
}

void names_set_attr(struct node *node, int valid, struct stat *attr)
{
	pthread_mutex_lock(&lock);
	if (valid & FUSE_SET_ATTR_MODE)
		node->attr.st_mode =
			(node->attr.st_mode & S_IFMT) | (attr->st_mode & 07777);
	if (valid & FUSE_SET_ATTR_UID)
		node->attr.st_uid = attr->st_uid;
	if (valid & FUSE_SET_ATTR_GID)
		node->attr.st_gid = attr->st_gid;
	if (valid & FUSE_SET_ATTR_SIZE)
		atomic_store_explicit(&node->size, attr->st_size,
				      memory_order_relaxed);
	set_times(node, valid, attr);
	get_attr(node, attr);
	pthread_mutex_unlock(&lock);
}

int names_lookup(struct node *parent, const char *name, struct node **found)
{
	struct entry *entry;

	pthread_mutex_lock(&lock);
	entry = find(parent, name);
	if (entry) {
		*found = entry->node;
		entry->node->lookups++;
	}
	pthread_mutex_unlock(&lock);
	return entry ? 0 : -ENOENT;
}

int names_make(struct node *parent, const char *name, const struct stat *attr,
	       const char *target, struct node **made)
{
	struct node *node = NULL;
	int error = 0;

	pthread_mutex_lock(&lock);
	if (name && find(parent, name)) {
		error = -EEXIST;
		goto out;
	}
	node = new_node(attr, target);
	if (!node) {
		error = -ENOMEM;
		goto out;
	}
	if (S_ISDIR(attr->st_mode))
		node->attr.st_nlink = 1;
	node->lookups = 1;
	if (name)
		error = add_entry(parent, name, node);
	if (error) {
		node->attr.st_nlink = node->lookups = 0;
		free_if_unused(node);
	}
out:
	pthread_mutex_unlock(&lock);
	*made = node;
	return error;
}

int names_link(struct node *node, struct node *parent, const char *name)
{
	int error = -EEXIST;

	pthread_mutex_lock(&lock);
	if (!find(parent, name))
		error = add_entry(parent, name, node);
	if (!error)
		node->lookups++;
	pthread_mutex_unlock(&lock);
	return error;
}

int names_remove(struct node *parent, const char *name)
{
	struct entry *entry;
	int error = -ENOENT;

	pthread_mutex_lock(&lock);
	entry = find(parent, name);
	if (entry)
		error = remove_entry(entry);
	pthread_mutex_unlock(&lock);
	return error;
}

int names_rename(struct node *parent, const char *name, struct node *new_parent,
		 const char *new_name)
{
	struct entry *from, *to;
	int error = -ENOENT;

	pthread_mutex_lock(&lock);
	from = find(parent, name);
	if (!from)
		goto out;
	to = find(new_parent, new_name);
	error = 0;
	if (to && to->node == from->node)
		goto out;
	if (to)
		error = remove_entry(to);
	if (!error)
		error = add_entry(new_parent, new_name, from->node);
	if (!error)
		take_entry(from);
out:
	pthread_mutex_unlock(&lock);
	return error;
}

void names_forget(struct node *node, uint64_t count)
{
	pthread_mutex_lock(&lock);
	node->lookups -= count < node->lookups ? count : node->lookups;
	free_if_unused(node);
	pthread_mutex_unlock(&lock);
}

const char *names_target(const struct node *node)
{
	return node->target;
}

static bool fill_one(const char *name, struct node *node, uint64_t cursor,
		     names_fill fill, void *context)
{
	struct stat attr;
	bool kept = false;

	get_attr(node, &attr);
	if (!fill(context, name, node, &attr, cursor, &kept))
		return false;
	if (kept)
		node->lookups++;
	return true;
}

void names_list(struct node *directory, uint64_t cursor, names_fill fill,
		void *context)
{
	struct entry *entry = NULL;
	bool room = true;

	pthread_mutex_lock(&lock);
	if (cursor < CURSOR_SELF)
		room = fill_one(".", directory, CURSOR_SELF, fill, context);
	if (room && cursor < CURSOR_PARENT)
		room = fill_one("..", directory->parent, CURSOR_PARENT, fill,
				context);
	if (room)
		entry = directory->first;
	for (; entry; entry = entry->next)
		if (entry->cursor > cursor &&
		    !fill_one(entry->name, entry->node, entry->cursor, fill,
			      context))
			break;
	pthread_mutex_unlock(&lock);
}

uint64_t names_count(void)
{
	uint64_t count;

	pthread_mutex_lock(&lock);
	count = nodes;
	pthread_mutex_unlock(&lock);
	return count;
}
