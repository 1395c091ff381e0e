/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_lost.c - messages that no receive has taken when their communicator ends.
 *
 * A process that frees a communicator, or is in MPI_Finalize, can receive nothing there any more, so what has arrived
 * and lies there is lost.  What comes later is not seen.
 */
#include "mpi/aid/check.h"

#define LOST_SHOWN 5 /* of a communicator */

void weft_mpi_check_lost(const char *call, MPI_Comm comm)
{
	unsigned n = 0;
	int there = 1;
	MPI_Count bytes = 0;
	MPI_Message m;
	MPI_Status st;

	if (!weft_mpi_checking)
		return;
	/* Ends: each turn but the last takes a message out. */
	while (!weft_mpi_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &there, &m, &st) && there) {
		(void)weft_mpi_Get_count(&st, MPI_BYTE, &bytes);
		if (n++ < LOST_SHOWN)
			weft_mpi_check_report("%s: a message of %lld bytes from rank %d, tag %d, "
					      "on %s was never received",
					      call, (long long)bytes, st.MPI_SOURCE, st.MPI_TAG,
					      weft_mpi_check_comm(comm));
		/* Its sender may wait for that. */
		(void)weft_mpi_Mrecv(NULL, 0, MPI_BYTE, &m, MPI_STATUS_IGNORE);
	}
	if (n > LOST_SHOWN)
		weft_mpi_check_report("%s: and %u more messages on %s", call, n - LOST_SHOWN,
				      weft_mpi_check_comm(comm));
}
