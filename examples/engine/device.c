/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.c - a poller of a device: 1,000 operations, eight at a time, while this program computes.
 *
 *   cc device.c $(pkg-config --cflags --libs weft-task)
 *
 * The device is a thread here that sets bits in a status word, as hardware would.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <weft/source.h>
#include <weft/stats.h>

#define SLOTS 8
#define OPERATIONS 1000

/* ---- the device -------------------------------------------------------------------------------
 */

struct device {
	_Atomic unsigned started, ready, stop; /* a bit per slot */
};

static void *hardware(void *arg)
{
	struct device *d = arg;
	while (!d->stop) {
		struct timespec ts = {0, 20000}; /* an operation takes about 20 us */
		unsigned now = atomic_exchange(&d->started, 0);
		nanosleep(&ts, NULL);
		atomic_fetch_or(&d->ready, now);
	}
	return NULL;
}

/* ---- the source: one look at the status word serves all requests ------------------------------
 */

struct operation {
	struct weft_event ev; /* first */
	int slot;
};

static void look(void *arg, struct weft_events *es)
{
	struct device *d = arg;
	unsigned ready = atomic_load(&d->ready);
	if (!ready)
		return;
	for (struct weft_event *e = weft_events_first(es); e; e = weft_events_next(es)) {
		unsigned bit = 1u << ((struct operation *)e)->slot;
		if (ready & bit) {
			atomic_fetch_and(&d->ready, ~bit);
			weft_event_complete(e, 0);
		}
	}
}

static void start(struct device *d, struct weft_events *es, struct operation *op, int slot)
{
	weft_event_init(&op->ev, NULL, NULL);
	op->slot = slot;
	atomic_fetch_or(&d->started, 1u << slot);
	weft_event_post(es, &op->ev);
}

int main(void)
{
	static struct device d;
	struct weft_events_ops ops = {.name = "device", .poll_group = look};
	struct weft_events *es;
	struct operation op[SLOTS];
	struct weft_event *all[SLOTS];
	pthread_t thread;
	if (weft_engine_start() || weft_events_open(&ops, &d, &es) ||
	    pthread_create(&thread, NULL, hardware, &d))
		return 1;
	int begun = 0, done = 0;
	for (; begun < SLOTS; begun++) {
		all[begun] = &op[begun].ev;
		start(&d, es, &op[begun], begun);
	}
	while (done < OPERATIONS) {
		/* Returns when one is there; the others go on.  Empty places do not count. */
		size_t n = 0;
		struct weft_event *open[SLOTS];
		for (int i = 0; i < SLOTS; i++)
			if (all[i])
				open[n++] = all[i];
		if (weft_event_wait_any(open, n, WEFT_FOREVER))
			return 1;
		for (int i = 0; i < SLOTS; i++) {
			if (!all[i] || !weft_event_done(all[i]))
				continue;
			done++;
			if (begun++ < OPERATIONS)
				start(&d, es, &op[i], i);
			else
				all[i] = NULL;
		}
	}
	weft_events_close(es);
	d.stop = 1;
	pthread_join(thread, NULL);
	printf("%d operations; rounds polled: %llu by us, %llu by the engine's thread\n", done,
	       (unsigned long long)weft_task_stat("poll_explicit"),
	       (unsigned long long)weft_task_stat("poll_watcher"));
	weft_engine_stop();
	return 0;
}
