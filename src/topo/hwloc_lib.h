/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hwloc_lib.h - libhwloc, loaded when it is first asked something.
 *
 * The kernel's files answer nearly always (sysfs.h), and loading libhwloc and its libudev is a sixth of what a process's
 * start costs.  So nothing is linked with it; its functions are members of a table.
 *
 * Callers   any thread.  Blocking: loads files.
 * Owner     this file; it is never unloaded.
 * Errors    where it is missing there is no table; the caller says what it cannot do without.
 */
#ifndef WEFT_TOPO_HWLOC_LIB_H
#define WEFT_TOPO_HWLOC_LIB_H

#include <hwloc.h>

/* Each function of hwloc that weft calls, without its prefix. */
#define WEFT_HWLOC_FUNCTIONS(F)                                                                    \
	F(bitmap_alloc)                                                                            \
	F(bitmap_and)                                                                              \
	F(bitmap_dup)                                                                              \
	F(bitmap_fill)                                                                             \
	F(bitmap_first)                                                                            \
	F(bitmap_free)                                                                             \
	F(bitmap_intersects)                                                                       \
	F(bitmap_isincluded)                                                                       \
	F(bitmap_isset)                                                                            \
	F(bitmap_iszero)                                                                           \
	F(bitmap_last)                                                                             \
	F(bitmap_list_asprintf)                                                                    \
	F(bitmap_list_sscanf)                                                                      \
	F(bitmap_next)                                                                             \
	F(bitmap_or)                                                                               \
	F(bitmap_set)                                                                              \
	F(bitmap_weight)                                                                           \
	F(bitmap_zero)                                                                             \
	F(get_cpubind)                                                                             \
	F(get_nbobjs_by_depth)                                                                     \
	F(get_obj_by_depth)                                                                        \
	F(get_type_depth)                                                                          \
	F(obj_type_is_cache)                                                                       \
	F(obj_type_snprintf)                                                                       \
	F(obj_type_string)                                                                         \
	F(topology_destroy)                                                                        \
	F(topology_get_complete_cpuset)                                                            \
	F(topology_get_depth)                                                                      \
	F(topology_get_topology_cpuset)                                                            \
	F(topology_init)                                                                           \
	F(topology_is_thissystem)                                                                  \
	F(topology_load)                                                                           \
	F(topology_restrict)                                                                       \
	F(topology_set_flags)

struct weft_hwloc {
#define WEFT_HWLOC_MEMBER(name) __typeof__(&hwloc_##name) name;
	WEFT_HWLOC_FUNCTIONS(WEFT_HWLOC_MEMBER)
#undef WEFT_HWLOC_MEMBER
};

/* The table, always the same; NULL: libhwloc is missing, or lacks a function of these. */
const struct weft_hwloc *weft_hwloc(void);

#endif
