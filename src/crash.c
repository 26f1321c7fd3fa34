/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * crash.c - see crash.h
 *
 * What runs in the handler calls nothing that could allocate or wait, but for
 * backtrace(3), which has been called before and then does neither.
 */
#include "crash.h"

#include <execinfo.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "request.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REPORTS 0
#else
#define REPORTS 1
#endif

#define STACK_BYTES (32 * 1024)
#define FRAMES_MAX  24

/* Should saying it hang, the process dies all the same. */
#define SAY_SECONDS 3

/* Where the program's text begins and ends; from the linker. */
extern const char __executable_start, etext;

static struct crash_config config;
static _Thread_local void *stack;

struct line {
	char text[768];
	size_t length;
};

static void put(struct line *line, const char *text)
{
	size_t length = strlen(text);
	size_t room = sizeof(line->text) - line->length;

	if (length > room)
		length = room;
	memcpy(line->text + line->length, text, length);
	line->length += length;
}

static void put_number(struct line *line, uint64_t number, unsigned int base)
{
	char digits[24];
	char *at = digits + sizeof(digits) - 1;

	*at = '\0';
	do
		*--at = "0123456789abcdef"[number % base];
	while (number /= base);
	if (base == 16)
		put(line, "0x");
	put(line, at);
}

static void put_address(struct line *line, const void *address)
{
	const char *at = address;

	if (at >= &__executable_start && at < &etext) {
		put(line, "zramfs+");
		at = (const char *)(at - &__executable_start);
	}
	put_number(line, (uintptr_t)at, 16);
}

static const char *name_of(int number)
{
	switch (number) {
	case SIGSEGV:
		return "SIGSEGV";
	case SIGBUS:
		return "SIGBUS";
	case SIGILL:
		return "SIGILL";
	case SIGFPE:
		return "SIGFPE";
	case SIGABRT:
		return "SIGABRT";
	default:
		return "signal";
	}
}

static void put_request(struct line *line)
{
	const struct request *request = request_current();

	if (!request || !request->busy)
		return;
	put(line, ", request opcode ");
	put_number(line, request->opcode, 10);
}

static void put_frames(struct line *line)
{
	void *frames[FRAMES_MAX];
	int i, count = backtrace(frames, FRAMES_MAX);

	put(line, ", at");
	for (i = 0; i < count; i++) {
		put(line, " ");
		put_address(line, frames[i]);
	}
}

static void on_crash(int number, siginfo_t *info, void *context)
{
	struct line line = {.length = 0};
	char thread[16] = "";

	alarm(SAY_SECONDS);
	prctl(PR_GET_NAME, thread);
	put(&line, "crash: ");
	put(&line, name_of(number));
	if (number != SIGABRT) {
		put(&line, " at address ");
		put_number(&line, (uintptr_t)info->si_addr, 16);
	}
	put(&line, ", thread ");
	put(&line, thread);
	put(&line, " (");
	put_number(&line, (uint64_t)gettid(), 10);
	put(&line, ")");
	put_request(&line);
	put_frames(&line);
	config.fault(config.context);
	config.say(config.context, line.text, line.length);
	/* SA_RESETHAND: this time it does what it always does. */
	raise(number);
}

void crash_install(const struct crash_config *given)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
	struct sigaction action = {
		.sa_sigaction = on_crash,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND,
	};
	void *frame;
	size_t i;

	if (!REPORTS)
		return;
	config = *given;
	backtrace(&frame, 1);
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

void crash_begin_thread(void)
{
	stack_t own = {.ss_size = STACK_BYTES};

	if (!REPORTS || stack)
		return;
	own.ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (own.ss_sp == MAP_FAILED)
		return;
	stack = own.ss_sp;
	sigaltstack(&own, NULL);
}

void crash_end_thread(void)
{
	const stack_t none = {.ss_flags = SS_DISABLE};

	if (!stack)
		return;
	sigaltstack(&none, NULL);
	munmap(stack, STACK_BYTES);
	stack = NULL;
}
