/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that brings nothing but weft/task.h: compiled as C and as C++ by tools/check-install.
 */
#include <stdio.h>
#include <weft/task.h>

struct job {
	struct weft_task task; /* inside: the engine allocates nothing */
	int n, square;
};

static enum weft_task_verdict run(struct weft_task *t, void *arg)
{
	struct job *j = (struct job *)arg;
	j->square = j->n * j->n;
	return WEFT_TASK_DONE;
}

int main(void)
{
	struct job job[100];
	struct weft_tally tally;
	long sum = 0;
	int i;
	if (weft_engine_start())
		return 1;
	weft_tally_init(&tally);
	for (i = 0; i < 100; i++) {
		job[i].n = i;
		weft_task_init(&job[i].task, "square", run, &job[i], WEFT_TASK_ONCE);
		job[i].task.tally = &tally;
		weft_task_submit(&job[i].task);
	}
	if (weft_tally_wait(&tally, 100, WEFT_FOREVER))
		return 1;
	for (i = 0; i < 100; i++)
		sum += job[i].square;
	weft_engine_stop();
	printf("%ld\n", sum);
	return sum == 328350 ? 0 : 1;
}
