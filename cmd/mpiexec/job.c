/* SPDX-License-Identifier: BSD-3-Clause */
/* job.c - the main loop: starts ranks, listens to the keeper, the clock and the user. */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "doctor.h"
#include "ends.h"
#include "events.h"
#include "handover.h"
#include "outfile.h"
#include "pmi.h"
#include "remote.h"
#include "say.h"
#include "sink.h"
#include "spawned.h"
#include "stream.h"
#include "verdict.h"

#define SECOND_NS 1000000000u
#define ASK_NS (5ull * SECOND_NS) /* after Ctrl-C, until SIGTERM */
#define LEAVE_NS                                                                                   \
	(5ull * SECOND_NS) /* to leave, when a rank failed after MPI_Finalize or left without */
#define LOST_NS (SECOND_NS / 2)     /* for the status of a program below a wrapper */
#define DRAIN_NS (2ull * SECOND_NS) /* for a reader that is slow, when the job has failed */
#define SPAWNS_AHEAD 4              /* requests that wait in the keeper's socket */

enum phase { RUNNING, FAILING, ENDING, DRAINING };

static struct {
	const struct job_setup *setup;
	const struct plan *plan;
	struct event_source keeper_source, signal_source;
	enum phase phase;
	int next_rank, spawning, living;
	bool loss_told;            /* that stdout cannot be written */
	bool nobody_waited;        /* all ranks ended by themselves */
	bool leaving;              /* the keeper has been told so */
	struct handover *handover; /* the job's secret, until the last rank has it */
	struct verdict verdict;
	bool verdict_told;
	int *statuses; /* wait status of each rank; -1: it has not ended */
	bool late_told;
	uint64_t late_ns; /* until a line says that a rank is late for MPI_Init */
	int forced_code;  /* the user or the clock ended it; 0: not */
	uint64_t timeout_at, window_at, ask_at, leave_at, lost_at, drain_at; /* 0: not set */
} job;

/* --- ending --- */

static bool is_far(void)
{
	return job.setup->launcher;
}

static void tell_keeper(enum keeper_op op, int value)
{
	if (is_far()) {
		remote_command(op, value);
		return;
	}
	struct keeper_msg m = {.op = (int32_t)op, .value = value};
	(void)keeper_send(job.setup->sock, m, NULL); /* gone: its socket says so too */
}

static void end_job(enum keeper_op op)
{
	bool first = job.phase < ENDING;
	if (first)
		job.phase =
			ENDING; /* before: hosts that have no ranks yet are gone at once, and say so */
	if (first || op == KEEPER_KILL)
		tell_keeper(op, 0);
}

/* A reader that went away (EPIPE) wanted no more; a full disk is a failure. */
static bool output_lost(void)
{
	int error = sink_error(sink_stdout());
	return error && error != EPIPE;
}

static bool has_files(void)
{
	return outfile_wanted(job.plan);
}

static bool files_lost(void)
{
	return has_files() && sink_files() && sink_error(sink_files());
}

/* The output has no reader, and the rank that died is one that wrote: it is no cause. */
static bool died_of_our_output(const struct verdict *v)
{
	return v->kind == VERDICT_DIED && WIFSIGNALED(v->value) && WTERMSIG(v->value) == SIGPIPE &&
	       sink_error(sink_stdout());
}

static void tell_verdict(const struct verdict *v)
{
	if (v->kind == VERDICT_START && spawned_tell(v->rank, v->value, v->step))
		return;
	if (!died_of_our_output(v))
		verdict_say(v, job.plan);
}

/* -disable-auto-cleanup: a death is told, and ends the job only in its exit code. */
static bool goes_on(struct verdict v)
{
	if (!job.plan->go_on || v.kind != VERDICT_DIED || job.phase != RUNNING || job.forced_code)
		return false;
	tell_verdict(&v);
	if (job.verdict.kind == VERDICT_NONE || verdict_is_unfinished(&job.verdict)) {
		job.verdict = v;
		job.verdict_told = true;
	}
	return true;
}

static void fail_job(struct verdict v)
{
	if (job.phase > FAILING || job.forced_code || goes_on(v))
		return;
	if (!verdict_replaces(&v, &job.verdict) && job.phase == FAILING)
		return;
	if (verdict_replaces(&v, &job.verdict))
		job.verdict = v;
	job.phase = FAILING;
	job.window_at = weft_clock_ns() + verdict_window_ns(&job.verdict);
}

static void on_aborted(int rank, int code, const char *why)
{
	fail_job((struct verdict){.kind = VERDICT_ABORT, .rank = rank, .value = code, .text = why});
}

static void on_broken(int rank, const char *what)
{
	fail_job((struct verdict){.kind = VERDICT_PROTOCOL, .rank = rank, .text = what});
}

/* Exit code 0 without MPI_Finalize, and nothing has ended the job. */
static bool unfinished_calmly(const struct verdict *v)
{
	return verdict_is_unfinished(v) && job.phase == RUNNING;
}

/* It has left MPI in order, or in disorder but well: ranks that have left too may go on for as long
 * as they like; those that have not are given a moment to do so. */
static void left_badly(const struct verdict *v)
{
	if (job.verdict.kind == VERDICT_NONE)
		job.verdict = *v;
	if (!job.leave_at)
		job.leave_at = weft_clock_ns() + LEAVE_NS;
}

/* Only its end was seen: how it ended, its parent will say, if that ends or asks. */
static void on_lost(int rank, int status)
{
	struct verdict v = {.kind = VERDICT_DIED, .rank = rank, .value = status};
	if (status < 0 && !job.lost_at)
		job.lost_at = weft_clock_ns() + LOST_NS;
	if (status < 0)
		return;
	if (unfinished_calmly(&v))
		left_badly(&v);
	else
		fail_job(v);
}

/* A wrapper is still there, and what it wrapped has gone without a word. */
static void judge_lost(void)
{
	for (int i = 0; i < job.plan->size; i++)
		if (pmi_state_of(i) == PMI_JOINED && pmi_is_attached(i) && pmi_is_silent(i))
			fail_job((struct verdict){.kind = VERDICT_LOST, .rank = i});
}

static void on_stuck(int rank)
{
	fail_job((struct verdict){.kind = VERDICT_STUCK, .rank = rank});
}

static const struct pmi_hooks hooks = {on_aborted, on_broken, on_lost, on_stuck};

/* --- starting --- */

/* Where a rank's stdout or stderr goes. */
static bool way_of(int rank, enum outfile_end end, struct stream_way *way)
{
	char own[65] = "";
	(void)gethostname(own, sizeof own - 1);
	const char *name = job.setup->place->hosts.items[job.setup->place->host_of[rank]].name;
	const char *host = name[0] ? name : own;
	*way = (struct stream_way){
		.rank = rank,
		.file = outfile_open(job.plan, rank, host, end),
		.label = job.plan->label,
		.live = job.plan->size == 1 || (rank == 0 && isatty(STDOUT_FILENO)),
	};
	if (outfile_copies(job.plan, end))
		way->sink = end == OUTFILE_OUT ? sink_stdout() : sink_stderr();
	return way->file >= -1;
}

static bool attach_ends(int rank, struct ends *e)
{
	struct stream_way out, err;
	if (!way_of(rank, OUTFILE_OUT, &out) || !way_of(rank, OUTFILE_ERR, &err))
		return false;
	if (send(e->ours[KEEPER_FD_BOOT], job.handover, sizeof *job.handover, MSG_NOSIGNAL) !=
	    (ssize_t)sizeof *job.handover)
		return false;
	close(e->ours[KEEPER_FD_BOOT]);
	e->ours[KEEPER_FD_BOOT] = -1;
	/* Whatever is attached now belongs to its new owner. */
	if (!stream_open(e->ours[KEEPER_FD_OUT], &out))
		return false;
	e->ours[KEEPER_FD_OUT] = -1;
	if (!stream_open(e->ours[KEEPER_FD_ERR], &err))
		return false;
	e->ours[KEEPER_FD_ERR] = -1;
	if (!pmi_attach(rank, plan_appnum_of(job.plan, rank), e->ours[KEEPER_FD_PMI]))
		return false;
	e->ours[KEEPER_FD_PMI] = -1;
	return true;
}

static void start_rank(int rank)
{
	struct ends e;
	struct keeper_msg m = {.op = KEEPER_SPAWN, .rank = rank};
	bool good = ends_make(&e) && attach_ends(rank, &e);
	int error = errno;
	if (good && keeper_send(job.setup->sock, m, e.theirs))
		job.spawning++;
	else if (!good)
		fail_job((struct verdict){.kind = VERDICT_START,
					  .rank = rank,
					  .value = error,
					  .step = KEEPER_STEP_SETUP});
	ends_close(e.ours);
	ends_close(e.theirs);
}

static void forget_secret(void)
{
	if (!job.handover)
		return;
	explicit_bzero(job.handover, sizeof *job.handover);
	munmap(job.handover, sizeof *job.handover);
	job.handover = NULL;
}

static void start_more(void)
{
	while (!is_far() && job.phase == RUNNING && job.next_rank < job.plan->size &&
	       job.spawning < SPAWNS_AHEAD && !job.forced_code)
		start_rank(job.next_rank++);
	if (is_far() ? !remote_needs_secret() : job.next_rank == job.plan->size)
		forget_secret();
}

/* stdin is rank 0's: our copy would keep its writer from noticing that it has gone. */
static void forget_stdin(void)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	close(null);
}

/* --- what the keeper says --- */

static bool all_have_left(void)
{
	for (int i = 0; i < job.plan->size; i++)
		if (pmi_state_of(i) == PMI_JOINED && pmi_is_attached(i))
			return false;
	return true;
}

static void rank_exited(int rank, int status)
{
	struct verdict v = {.kind = VERDICT_DIED, .rank = rank, .value = status};
	pmi_detach(rank);
	job.living--;
	job.statuses[rank] = status;
	enum pmi_state state = pmi_state_of(rank);
	if (pmi_has_aborted(rank) || (status == 0 && state != PMI_JOINED))
		return;
	/* A wrapper that ends well hides how its program ended. */
	if (status == 0 && pmi_speaker_status(rank) > 0)
		v.value = pmi_speaker_status(rank);
	if (job.plan->go_on) {
		fail_job(v);
		return;
	}
	bool in_order = state == PMI_LEFT && WIFEXITED(status) && job.phase == RUNNING;
	if (in_order || unfinished_calmly(&v))
		left_badly(&v);
	else
		fail_job(v);
}

static void rank_failed(const struct keeper_msg *m)
{
	fail_job((struct verdict){
		.kind = VERDICT_START, .rank = m->rank, .value = m->value, .step = m->step});
}

static void keeper_lost(void)
{
	keeper_kill_all();
	if (job.phase < DRAINING && !job.forced_code) {
		job.verdict = (struct verdict){
			.kind = VERDICT_INTERNAL,
			.text = "the process that keeps the ranks was killed: the job is ended"};
		verdict_say(&job.verdict, job.plan);
	}
	job.phase = DRAINING;
}

static void hear_keeper(const struct keeper_msg *m)
{
	switch ((enum keeper_op)m->op) {
	case KEEPER_STARTED:
		job.spawning--;
		job.living++;
		if (m->rank == 0 && !is_far())
			forget_stdin();
		break;
	case KEEPER_FAILED:
		job.spawning--;
		rank_failed(m);
		break;
	case KEEPER_EXITED:
		rank_exited(m->rank, m->value);
		break;
	case KEEPER_GONE:
		if (job.phase == FAILING)
			tell_verdict(
				&job.verdict); /* all hosts are lost: there is nothing to wait for */
		job.phase = DRAINING;
		break;
	default:
		break;
	}
}

static bool far_way(int rank, bool err, struct stream_way *way)
{
	return way_of(rank, err ? OUTFILE_ERR : OUTFILE_OUT, way);
}

static void host_lost(int host, const char *why)
{
	static char text[700];
	const char *name = job.setup->place->hosts.items[host].name;
	snprintf(text, sizeof text, "the agent on %.100s is lost: %.500s", name, why ? why : "");
	fail_job((struct verdict){.kind = VERDICT_INTERNAL, .text = why ? text : NULL});
}

static const struct remote_hooks far_hooks = {hear_keeper, host_lost, far_way};

static void keeper_ready(struct event_source *source, uint32_t events)
{
	struct keeper_msg m;
	(void)source;
	(void)events;
	ssize_t n = recv(job.setup->sock, &m, sizeof m, MSG_WAITALL);
	if (n == (ssize_t)sizeof m)
		hear_keeper(&m);
	else if (n >= 0 || errno != EINTR) {
		events_remove(job.setup->sock);
		if (job.phase != DRAINING)
			keeper_lost();
	}
	start_more();
}

/* --- what the user says --- */

static void asked_to_end(int sig)
{
	if (job.forced_code) {
		end_job(KEEPER_KILL); /* the second time: at once */
		return;
	}
	job.forced_code = 128 + sig;
	if (!spawned_is()) /* the other job's mpiexec has said it */
		say("SIG%s: asking the ranks to end%s", sigabbrev_np(sig),
		    sig == SIGINT ? " (once more: at once)" : "");
	if (sig == SIGQUIT && !is_far())
		doctor_last_look();
	tell_keeper(KEEPER_SIGNAL, sig);
	job.ask_at = weft_clock_ns() + ASK_NS;
	if (job.phase == FAILING)
		end_job(KEEPER_END);
}

static void signal_ready(struct event_source *source, uint32_t events)
{
	struct signalfd_siginfo si;
	(void)source;
	(void)events;
	if (read(job.setup->signal_fd, &si, sizeof si) != (ssize_t)sizeof si)
		return;
	int sig = (int)si.ssi_signo;
	switch (sig) {
	case SIGTSTP:
		tell_keeper(KEEPER_SIGNAL, SIGTSTP);
		if (is_far())
			remote_pause();
		raise(SIGSTOP);
		break;
	case SIGCONT:
	case SIGUSR1:
	case SIGUSR2:
		tell_keeper(KEEPER_SIGNAL, sig);
		break;
	default:
		asked_to_end(sig);
		break;
	}
}

/* --- the clock --- */

static bool time_passed(uint64_t *at_p, uint64_t now)
{
	if (!*at_p || now < *at_p)
		return false;
	*at_p = 0;
	return true;
}

/* One line, once: a slow import is no failure, and what the others wait for shall be known. */
static void tell_late(uint64_t now)
{
	uint64_t since = pmi_barrier_since();
	if (!since || job.late_told || job.phase != RUNNING || now < since + job.late_ns)
		return;
	int rank = pmi_late_rank();
	if (rank < 0)
		return;
	job.late_told = true;
	say("rank %d has not called MPI_Init, and other ranks have waited for it for %llu s; they "
	    "go on waiting",
	    rank, (unsigned long long)(job.late_ns / SECOND_NS));
}

static void check_clock(void)
{
	uint64_t now = weft_clock_ns();
	tell_late(now);
	if (job.phase < ENDING && time_passed(&job.timeout_at, now) && !job.forced_code) {
		say("the job ran longer than %g s (%s): ended", job.plan->timeout_s,
		    job.plan->timeout_by);
		job.forced_code = 124;
		if (!is_far())
			doctor_last_look();
		end_job(KEEPER_END);
	}
	if (time_passed(&job.ask_at, now))
		end_job(KEEPER_END);
	if (time_passed(&job.leave_at, now) && job.phase == RUNNING && !all_have_left())
		fail_job(job.verdict);
	if (time_passed(&job.lost_at, now) && job.phase == RUNNING)
		judge_lost();
	if (time_passed(&job.window_at, now) && job.phase == FAILING) {
		tell_verdict(&job.verdict);
		end_job(KEEPER_END);
	}
}

static int next_timeout_ms(void)
{
	uint64_t since = job.late_told ? 0 : pmi_barrier_since();
	const uint64_t at[] = {since && weft_clock_ns() < since + job.late_ns ? since + job.late_ns
									      : 0,
			       job.phase < ENDING ? job.timeout_at : 0,
			       job.window_at,
			       job.ask_at,
			       job.leave_at,
			       job.lost_at,
			       job.drain_at};
	uint64_t now = weft_clock_ns(), first = 0;
	for (size_t i = 0; i < weft_countof(at); i++)
		if (at[i] && (!first || at[i] < first))
			first = at[i];
	if (!first)
		return -1;
	if (first <= now)
		return 0;
	uint64_t ms = (first - now) / 1000000u + 1;
	return ms < 3600000 ? (int)ms : 3600000;
}

static bool all_left(void)
{
	return job.phase == RUNNING && !job.leaving && !job.forced_code &&
	       job.next_rank == job.plan->size && !job.spawning && !job.living;
}

static bool interrupted_and_left(void)
{
	return job.forced_code && job.phase < ENDING && !job.spawning && !job.living;
}

/* The ranks are gone: what they wrote still has to get out. */
static bool output_drained(void)
{
	bool hurry = job.forced_code || job.verdict.kind != VERDICT_NONE;
	if (hurry && !job.drain_at)
		job.drain_at = weft_clock_ns() + DRAIN_NS;
	if (job.drain_at && weft_clock_ns() >= job.drain_at)
		return true;
	if (!stream_finish_all() || !sink_is_idle(sink_stdout()) || !sink_is_idle(sink_stderr()) ||
	    (has_files() && !sink_is_idle(sink_files())))
		return false;
	if (files_lost() && !job.loss_told) {
		job.loss_told = true;
		say("cannot write to the files of the ranks' output: %s; some of it is lost",
		    strerror(sink_error(sink_files())));
		return false;
	}
	if (!output_lost() || job.loss_told)
		return true;
	job.loss_told = true;
	say("cannot write to standard output: %s; output of the ranks is lost",
	    strerror(sink_error(sink_stdout())));
	return false; /* until that line is out as well */
}

/* "0-3:0 4:9(KILL)": runs of ranks that ended alike. */
static void say_exit_codes(void)
{
	char text[1900] = "";
	size_t len = 0;
	for (int r = 0;
	     r < job.plan->size && len < sizeof text - 64;) { /* ends: r moves past a run */
		int last = r, status = job.statuses[r];
		while (last + 1 < job.plan->size && job.statuses[last + 1] == status)
			last++;
		len += (size_t)snprintf(text + len, sizeof text - len,
					last > r ? " %d-%d:" : " %d:", r, last);
		if (status < 0)
			len += (size_t)snprintf(text + len, sizeof text - len, "not ended");
		else if (WIFSIGNALED(status))
			len += (size_t)snprintf(text + len, sizeof text - len, "SIG%s",
						sigabbrev_np(WTERMSIG(status)));
		else
			len += (size_t)snprintf(text + len, sizeof text - len, "%d",
						WEXITSTATUS(status));
		r = last + 1;
	}
	say("exit codes:%s", text);
}

/* Before any rank starts: what cannot be written is said at once. */
static bool open_files(void)
{
	struct stream_way way;
	for (int r = 0; r < job.plan->size; r++)
		if (!way_of(r, OUTFILE_OUT, &way) || !way_of(r, OUTFILE_ERR, &way))
			return false;
	return true;
}

static bool start_far(void)
{
	const struct remote_setup s = {
		.plan = job.plan,
		.place = job.setup->place,
		.handover = job.handover,
		.launcher = job.setup->launcher,
		.here_direct = job.setup->here_direct,
		.hooks = &far_hooks,
	};
	job.next_rank = job.spawning = job.plan->size;
	return remote_start(&s);
}

/* The process that has started this job is gone, and does not know it yet. */
static void end_orphaned(void)
{
	if (job.phase >= ENDING)
		return;
	job.forced_code = 1;
	end_job(KEEPER_END);
}

static bool start_job(void)
{
	char *mapping = place_mapping(job.setup->place, job.plan->size);
	job.statuses = malloc((size_t)job.plan->size * sizeof *job.statuses);
	for (int r = 0; job.statuses && r < job.plan->size; r++)
		job.statuses[r] = -1;
	if (!job.statuses || !open_files())
		return false;
	job.handover = handover_create(job.setup->jobid);
	job.keeper_source.ready = keeper_ready;
	job.signal_source.ready = signal_ready;
	if (!job.handover || !events_init() || !sink_open_all(stream_resume_all) ||
	    !pmi_init(job.plan->size, job.setup->jobid, mapping, &hooks) ||
	    (!is_far() && !events_add(job.setup->sock, EPOLLIN, &job.keeper_source)) ||
	    !events_add(job.setup->signal_fd, EPOLLIN, &job.signal_source) ||
	    !spawned_watch(end_orphaned)) {
		say("cannot start: %s", strerror(errno));
		return false;
	}
	free(mapping);
	const char *late = getenv("WEFT_INIT_TIMEOUT"); /* the ranks' setting of the same name */
	long late_s = late ? strtol(late, NULL, 10) : 0;
	job.late_ns = (late_s > 0 && late_s <= 86400 ? (uint64_t)late_s : 60) * SECOND_NS;
	verdict_use(job.setup->place);
	if (job.plan->timeout_s > 0)
		job.timeout_at = weft_clock_ns() + (uint64_t)(job.plan->timeout_s * 1e9);
	return !is_far() || start_far();
}

int job_run(const struct job_setup *setup)
{
	job.setup = setup;
	job.plan = setup->plan;
	if (!start_job()) {
		if (!is_far()) {
			close(setup->sock); /* the keeper ends by itself */
			(void)waitpid(setup->keeper, NULL, 0);
		}
		return 1;
	}
	start_more();
	bool codes_said = !job.plan->exit_codes;
	for (;;) { /* ends: the last rank is gone and its output is out */
		check_clock();
		if (all_left()) {
			if (!job.verdict_told)
				tell_verdict(
					&job.verdict); /* a failure after MPI_Finalize, or none called */
			job.nobody_waited = true;
			job.leaving = true;
			tell_keeper(KEEPER_LEAVE, 0);
		} else if (interrupted_and_left()) {
			end_job(KEEPER_END);
		}
		if (job.phase == DRAINING && !codes_said) {
			codes_said = true;
			say_exit_codes();
		}
		if (job.phase == DRAINING && output_drained())
			break;
		int ms = next_timeout_ms();
		int tick = -1;
		if (is_far()) {
			tick = remote_tick();
			start_more();
		}
		events_wait(tick >= 0 && (ms < 0 || tick < ms) ? tick : ms);
	}
	if (is_far())
		remote_end();
	else
		(void)waitpid(setup->keeper, NULL, 0);
	if (job.forced_code)
		return job.forced_code;
	if (files_lost() && verdict_exit_code(&job.verdict) == 0)
		return 1;
	if (output_lost() &&
	    (verdict_exit_code(&job.verdict) == 0 || died_of_our_output(&job.verdict)))
		return 1;
	/* All ranks ended well, some without MPI_Finalize: a line, and no failure. */
	return job.nobody_waited && verdict_is_unfinished(&job.verdict)
		       ? 0
		       : verdict_exit_code(&job.verdict);
}
