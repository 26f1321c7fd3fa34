/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * deadline.c - see deadline.h
 */
#include "deadline.h"

#define NS_PER_MS     1000000L
#define NS_PER_SECOND 1000000000L

int deadline_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;
	int error = -pthread_condattr_init(&attributes);

	if (error)
		return error;
	error = -pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	if (!error)
		error = -pthread_cond_init(cond, &attributes);
	pthread_condattr_destroy(&attributes);
	return error;
}

struct timespec deadline_after(unsigned int ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * NS_PER_MS;
	if (until.tv_nsec >= NS_PER_SECOND) {
		until.tv_nsec -= NS_PER_SECOND;
		until.tv_sec++;
	}
	return until;
}
