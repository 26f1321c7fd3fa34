/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * keeper.c - see keeper.h
 *
 * One loop: what the worker says, what the system says of the worker, and
 * signals that ask for an end. Nothing is allocated after the start.
 */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "process_memory.h"

/* fork() fails while memory is short: try again for a while. */
#define FORK_ATTEMPTS 100
#define FORK_PAUSE_US (100 * 1000)

struct keeper {
	const struct keeper_config *config;
	int signals; /* signalfd */
	int link;    /* to the worker; -1: none */
	int program; /* that workers are; -1: the present one */
	pid_t worker;
	bool ready;	     /* some worker was */
	bool served;	     /* this worker has */
	bool ending;	     /* it was asked to */
	bool unproven;	     /* the program has not served yet */
	unsigned int deaths; /* in a row */
	time_t first_death;
};

void keeper_tell(int link, enum keeper_message what, const char *text,
		 size_t length)
{
	char message[KEEPER_MESSAGE_MAX];

	if (length > sizeof(message) - 1)
		length = sizeof(message) - 1;
	message[0] = (char)what;
	if (length)
		memcpy(message + 1, text, length);
	/* No keeper, or a full socket: then it is not told. */
	send(link, message, length + 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static time_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* --- starting ---------------------------------------------------------- */

static void be_worker(struct keeper *keeper, int link)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_UNBLOCK, &child, NULL);
	close(keeper->signals);
	prctl(PR_SET_NAME, KEEPER_WORKER_NAME);
	if (keeper->program >= 0)
		keeper->config->become(keeper->config->context, keeper->program,
				       link);
	exit(keeper->config->work(keeper->config->context, link,
				  !keeper->ready));
}

static int start(struct keeper *keeper)
{
	int links[2];
	unsigned int i;

	if (keeper->link >= 0)
		close(keeper->link);
	keeper->link = -1;
	keeper->served = false;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, links))
		return -errno;
	for (i = 0; i < FORK_ATTEMPTS; i++) {
		keeper->worker = fork();
		if (keeper->worker >= 0)
			break;
		usleep(FORK_PAUSE_US);
	}
	if (keeper->worker == 0) {
		close(links[0]);
		be_worker(keeper, links[1]);
	}
	close(links[1]);
	if (keeper->worker < 0) {
		int error = -errno;

		close(links[0]);
		return error;
	}
	keeper->link = links[0];
	return 0;
}

/* --- waiting ----------------------------------------------------------- */

/* From now on, workers are the present program. */
static void forget_program(struct keeper *keeper)
{
	if (keeper->program >= 0)
		close(keeper->program);
	keeper->program = -1;
}

/* A descriptor, as the file may be gone when the next worker is needed. */
static void upgrade(struct keeper *keeper, const char *program)
{
	const char byte = KEEPER_HAND_OVER;

	forget_program(keeper);
	keeper->program = open(program, O_PATH | O_CLOEXEC);
	if (keeper->program < 0) {
		log_line(LOG_ERR, "%s: %s", program, strerror(errno));
		return;
	}
	keeper->unproven = true;
	log_line(LOG_INFO, "going on with %s", program);
	if (send(keeper->link, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
		log_line(LOG_ERR, "the worker does not listen: %s",
			 strerror(errno));
}

/* What the worker has to say. 0, or the exit status to end with. */
static int listen_to_worker(struct keeper *keeper)
{
	char message[KEEPER_MESSAGE_MAX + 1];
	ssize_t length;
	int status = 0;

	length = recv(keeper->link, message, KEEPER_MESSAGE_MAX, MSG_DONTWAIT);
	if (length < 0)
		return 0;
	if (length == 0) {
		/* It has ended, or is about to: waitpid() will tell. */
		close(keeper->link);
		keeper->link = -1;
		return 0;
	}
	message[length] = '\0';
	switch (message[0]) {
	case KEEPER_READY:
		if (!keeper->ready)
			status = keeper->config->ready(keeper->config->context);
		keeper->ready = true;
		process_memory_let_code_go();
		break;
	case KEEPER_SERVED:
		keeper->served = true;
		keeper->unproven = false;
		break;
	case KEEPER_UPGRADE:
		upgrade(keeper, message + 1);
		break;
	case KEEPER_LINE:
		log_line(LOG_ERR, "%s", message + 1);
		break;
	}
	return status;
}

/* What is in the socket still was said before the worker died. */
static void hear_out(struct keeper *keeper)
{
	struct pollfd event = {.events = POLLIN};

	while (keeper->link >= 0) {
		event.fd = keeper->link;
		if (poll(&event, 1, 0) <= 0)
			break;
		listen_to_worker(keeper);
	}
}

static void pass_on(struct keeper *keeper, int signal)
{
	keeper->ending = true;
	kill(keeper->worker, signal);
}

/* True when the worker has ended; then *status is how. */
static bool take_signal(struct keeper *keeper, int *status)
{
	struct signalfd_siginfo signal;

	if (read(keeper->signals, &signal, sizeof(signal)) != sizeof(signal))
		return false;
	if (signal.ssi_signo != SIGCHLD) {
		pass_on(keeper, (int)signal.ssi_signo);
		return false;
	}
	return waitpid(keeper->worker, status, WNOHANG) == keeper->worker;
}

/* Until the worker has ended: how, as waitpid(2) tells it. -1: ready failed. */
static int wait_for_end(struct keeper *keeper, int *failure)
{
	struct pollfd events[2] = {{.events = POLLIN}, {.events = POLLIN}};
	int status = 0;

	for (;;) {
		events[0].fd = keeper->signals;
		events[1].fd = *failure ? -1 : keeper->link;
		if (poll(events, 2, -1) < 0)
			continue;
		if (events[1].revents) {
			*failure = listen_to_worker(keeper);
			if (*failure)
				pass_on(keeper, SIGTERM);
		}
		if (events[0].revents && take_signal(keeper, &status)) {
			hear_out(keeper);
			return status;
		}
	}
}

/* --- deciding ---------------------------------------------------------- */

static void tell_death(const struct keeper *keeper, int status)
{
	if (WIFSIGNALED(status))
		log_line(LOG_ERR, "worker %d died: %s", (int)keeper->worker,
			 strsignal(WTERMSIG(status)));
	else
		log_line(LOG_ERR, "worker %d gave up, with status %d",
			 (int)keeper->worker, WEXITSTATUS(status));
}

static bool may_start_another(struct keeper *keeper)
{
	time_t now = seconds();

	if (keeper->served || keeper->deaths == 0 ||
	    now - keeper->first_death > KEEPER_DEATHS_SECONDS) {
		keeper->deaths = 0;
		keeper->first_death = now;
	}
	if (++keeper->deaths < KEEPER_DEATHS)
		return true;
	log_line(LOG_ERR,
		 "%d workers died within %d seconds and served nothing: giving "
		 "up, what was in this filesystem is lost",
		 KEEPER_DEATHS, KEEPER_DEATHS_SECONDS);
	return false;
}

/* Whether that was the end; *result is the exit status then. */
static bool is_end(struct keeper *keeper, int status, int *result, bool *lost)
{
	bool in_order = WIFEXITED(status) && WEXITSTATUS(status) == 0;

	*result = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
	if (in_order || keeper->ending)
		return true;
	/* What it had to say, it has said to the terminal. */
	if (!keeper->ready && WIFEXITED(status))
		return true;
	if (WIFEXITED(status) && WEXITSTATUS(status) == KEEPER_HANDED_OVER)
		return false;
	tell_death(keeper, status);
	if (keeper->unproven && keeper->program >= 0) {
		log_line(LOG_ERR, "going back to the program before");
		forget_program(keeper);
	}
	if (may_start_another(keeper))
		return false;
	*lost = keeper->ready;
	*result = EXIT_FAILURE;
	return true;
}

int keeper_run(const struct keeper_config *config, bool *lost)
{
	struct keeper keeper = {.config = config, .link = -1, .program = -1};
	int result = 0, failure = 0;
	sigset_t signals;
	int error;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	keeper.signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (keeper.signals < 0) {
		log_line(LOG_ERR, "cannot wait for signals: %s",
			 strerror(errno));
		return EXIT_FAILURE;
	}
	*lost = false;
	do {
		error = start(&keeper);
		if (error) {
			log_line(LOG_ERR, "cannot start a worker: %s",
				 strerror(-error));
			*lost = keeper.ready;
			result = EXIT_FAILURE;
			break;
		}
		/*
		 * Of what is in memory now, nothing may have to be read from a
		 * disk when the next worker is to be started. Not allowed to
		 * everybody, and not needed by anybody.
		 */
		mlockall(MCL_CURRENT | MCL_ONFAULT);
	} while (!is_end(&keeper, wait_for_end(&keeper, &failure), &result,
			 lost));
	if (keeper.link >= 0)
		close(keeper.link);
	forget_program(&keeper);
	close(keeper.signals);
	return failure ? failure : result;
}
