/* SPDX-License-Identifier: BSD-3-Clause */
/* soft.h - how many ranks "-soft" allows, and where "-path" finds the program; both as MPI names them for spawn, too. */
#ifndef WEFT_MPIEXEC_SOFT_H
#define WEFT_MPIEXEC_SOFT_H

/* The largest number from 1 to most that a list of "a", "a:b" and "a:b:step" names; 0: none, or no such list. */
int soft_count(const char *list, int most);

/* The program in a folder of path, a new string; NULL: none has it, or it names a folder itself. */
char *soft_find(const char *program, const char *path);

#endif
