/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attr.c - attributes cached on communicators, datatypes and windows; one code for all kinds.
 *
 * Callers   any thread.  Callbacks run on the calling thread, with no lock held.
 * Owner     a key lives until it is freed and no object holds a value under it.
 */
#include <mpi-ext.h>
#include "base/assert.h"
#include "mpi/comm/attr.h"

#include <stdlib.h>

#include "boot/boot.h"
#include "mpi/lang.h"
#include "mpi/rma/win.h"

struct keyval {
	enum weft_mpi_kind kind;
	void (*copy)(void);   /* 0: do not copy, 1: copy the value, else the user's function */
	void (*delete)(void); /* 0: nothing to do */
	void *extra;
	const struct weft_lang *lang; /* of both; NULL: C */
	MPI_Aint number;              /* extra state of another language */
	bool freed;                   /* by the user; waits for refs */
	int refs;                     /* values and running callbacks */
};

struct value {
	enum weft_lang_form form;
	void *pointer;   /* POINTER */
	MPI_Aint number; /* the other forms */
	int narrow;      /* INTEGER: what C sees of it */
};

struct weft_mpi_attrs { /* one value; the list goes from the last set to the first */
	struct weft_mpi_attrs *next;
	int key;
	struct value value;
};

#define FIRST_KEY 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct keyval **keys; /* under lock; index key - FIRST_KEY, NULL: free */
static int key_count;

/* What MPI_Attr_get points to. */
static int tag_ub = WEFT_MPI_TAG_UB, io_rank = MPI_ANY_SOURCE, host_rank = MPI_PROC_NULL;
static int wtime_global, appnum, universe;
static bool have_appnum, have_universe;

void weft_mpi_attrs_init(const struct weft_boot_info *boot)
{
	appnum = boot->appnum;
	have_appnum = boot->size > 1 || boot->appnum > 0;
	/* Not set: no limit is known to how many processes there may be. */
	universe = boot->universe;
	have_universe = boot->universe > 0;
}

/* ---- keys --------------------------------------------------------------------------------- */

static struct keyval *key_locked(int key, enum weft_mpi_kind kind)
{
	weft_assert_held(weft_mutex, &lock);
	int i = key - FIRST_KEY;

	if (key < FIRST_KEY || i >= key_count || !keys[i] || keys[i]->kind != kind)
		return NULL;
	return keys[i];
}

static void key_unref_locked(int key)
{
	weft_assert_held(weft_mutex, &lock);
	struct keyval *k = keys[key - FIRST_KEY];

	if (--k->refs == 0 && k->freed) {
		keys[key - FIRST_KEY] = NULL;
		free(k);
	}
}

static int key_create(enum weft_mpi_kind kind, void (*copy)(void), void (*delete)(void), int *key_p,
		      void *extra)
{
	struct keyval *k = calloc(1, sizeof(*k));
	int i = 0, err = MPI_SUCCESS;

	if (!k)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	*k = (struct keyval){.kind = kind, .copy = copy, .delete = delete, .extra = extra};
	k->lang = extra ? weft_mpi_lang_take(extra) : NULL;
	if (k->lang)
		k->number = *(MPI_Aint *)extra;
	pthread_mutex_lock(&lock);
	static int from; /* where the search goes on, so that a freed key rests */
	for (i = 0; i < key_count && keys[(from + i) % key_count]; i++)
		;
	if (i < key_count) {
		i = (from + i) % key_count;
		from = i + 1;
	} else {
		int more = key_count ? 2 * key_count : 64;
		struct keyval **grown = realloc(keys, (size_t)more * sizeof(*grown));
		if (grown) {
			keys = grown;
			for (int j = key_count; j < more; j++)
				keys[j] = NULL;
			i = key_count;
			key_count = more;
			from = i + 1;
		} else {
			err = weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
		}
	}
	if (!err) {
		keys[i] = k;
		*key_p = FIRST_KEY + i;
	}
	pthread_mutex_unlock(&lock);
	if (err)
		free(k);
	return err;
}

static int key_free(enum weft_mpi_kind kind, int *key_p)
{
	int err = MPI_SUCCESS;

	pthread_mutex_lock(&lock);
	struct keyval *k = key_locked(*key_p, kind);
	if (k && k->freed) {
		/* Values still hold it: MPI lets a program free a key that is in use, and so each
		 * of its copies. */
		*key_p = MPI_KEYVAL_INVALID;
	} else if (!k) {
		err = weft_mpi_err(MPI_ERR_KEYVAL, "invalid key %d (predefined, freed or wild)",
				   *key_p);
	} else {
		k->freed = true;
		k->refs++;
		key_unref_locked(*key_p);
		*key_p = MPI_KEYVAL_INVALID;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* ---- the user's callbacks ----------------------------------------------------------------- */

static void *head_handle(const struct weft_mpi_head *head)
{
	return (void *)(uintptr_t)head->handle;
}

/* What C sees of a value: itself, or where it lies. */
static void *as_pointer(struct value *v)
{
	switch (v->form) {
	case WEFT_LANG_INTEGER:
		return &v->narrow;
	case WEFT_LANG_ADDRESS:
		return &v->number;
	default:
		return v->pointer;
	}
}

static MPI_Aint as_number(const struct value *v)
{
	return v->form == WEFT_LANG_POINTER ? (MPI_Aint)(intptr_t)v->pointer : v->number;
}

static struct value from_number(enum weft_lang_form form, MPI_Aint number)
{
	if (form == WEFT_LANG_POINTER)
		return (struct value){.pointer = (void *)(intptr_t)number};
	return (struct value){.form = form, .number = number, .narrow = (int)number};
}

static int call_delete(const struct keyval *k, struct weft_mpi_head *head, int key, struct value *v)
{
	if (!k->delete)
		return MPI_SUCCESS;
	if (k->lang) {
		MPI_Aint extra = k->number;
		return k->lang->delete (k->delete, weft_mpi_handle_toint(head_handle(head)), key,
					as_number(v), &extra);
	}
	if (k->kind == WEFT_MPI_COMM)
		return ((MPI_Comm_delete_attr_function *)k->delete)(head_handle(head), key,
								    as_pointer(v), k->extra);
	if (k->kind == WEFT_MPI_TYPE)
		return ((MPI_Type_delete_attr_function *)k->delete)(head_handle(head), key,
								    as_pointer(v), k->extra);
	return ((MPI_Win_delete_attr_function *)k->delete)(head_handle(head), key, as_pointer(v),
							   k->extra);
}

/* A copy keeps the form of what it is a copy of. */
static int call_lang_copy(const struct keyval *k, struct weft_mpi_head *head, int key,
			  const struct value *v, struct value *out_p, int *flag)
{
	MPI_Aint extra = k->number, number = 0;
	int err = k->lang->copy(k->copy, weft_mpi_handle_toint(head_handle(head)), key, &extra,
				as_number(v), &number, flag);

	*out_p = from_number(v->form, number);
	return err;
}

static int call_copy(const struct keyval *k, struct weft_mpi_head *head, int key, struct value *v,
		     struct value *out_p, int *flag)
{
	void *in = as_pointer(v), *out = NULL;
	int err;

	*flag = 0;
	if (!k->copy)
		return MPI_SUCCESS;
	if ((uintptr_t)k->copy == 1) {
		*flag = 1;
		*out_p = *v;
		return MPI_SUCCESS;
	}
	if (k->lang)
		return call_lang_copy(k, head, key, v, out_p, flag);
	if (k->kind == WEFT_MPI_COMM)
		err = ((MPI_Comm_copy_attr_function *)k->copy)(head_handle(head), key, k->extra, in,
							       &out, flag);
	else if (k->kind == WEFT_MPI_TYPE)
		err = ((MPI_Type_copy_attr_function *)k->copy)(head_handle(head), key, k->extra, in,
							       &out, flag);
	else
		err = ((MPI_Win_copy_attr_function *)k->copy)(head_handle(head), key, k->extra, in,
							      &out, flag);
	/* The address of a number, given back: the copy is that number. */
	*out_p = out == in ? *v : (struct value){.pointer = out};
	return err;
}

/* ---- values ------------------------------------------------------------------------------- */

static struct weft_mpi_attrs **find_locked(struct weft_mpi_head *head, int key)
{
	weft_assert_held(weft_mutex, &lock);
	struct weft_mpi_attrs **link = &head->attrs;

	while (*link && (*link)->key != key)
		link = &(*link)->next;
	return link;
}

static int attr_delete(struct weft_mpi_head *head, int key)
{
	pthread_mutex_lock(&lock);
	struct keyval *k = key_locked(key, head->kind);
	struct weft_mpi_attrs *a = k ? *find_locked(head, key) : NULL;
	struct value value = a ? a->value : (struct value){0};
	if (a)
		k->refs++;
	pthread_mutex_unlock(&lock);
	if (!a)
		return weft_mpi_err(MPI_ERR_KEYVAL,
				    k ? "no value is cached under key %d"
				      : "invalid key %d (predefined, freed or wild)",
				    key);
	int err = call_delete(k, head, key, &value);
	pthread_mutex_lock(&lock);
	struct weft_mpi_attrs **link = find_locked(head, key);
	if (!err && *link == a) {
		*link = a->next;
		free(a);
		key_unref_locked(key);
	}
	key_unref_locked(key);
	pthread_mutex_unlock(&lock);
	return err;
}

static int attr_set(struct weft_mpi_head *head, int key, void *pointer)
{
	const struct weft_lang *lang = pointer ? weft_mpi_lang_take(pointer) : NULL;
	struct value value = lang ? from_number(lang->form, *(MPI_Aint *)pointer)
				  : (struct value){.pointer = pointer};

	pthread_mutex_lock(&lock);
	struct keyval *k = key_locked(key, head->kind);
	if (k && k->freed)
		k = NULL;
	bool replace = k && *find_locked(head, key);
	if (k)
		k->refs++; /* becomes the new value's */
	pthread_mutex_unlock(&lock);
	if (!k)
		return weft_mpi_err(MPI_ERR_KEYVAL, "invalid key %d (predefined, freed or wild)",
				    key);
	int err = replace ? attr_delete(head, key) : MPI_SUCCESS;
	struct weft_mpi_attrs *a = err ? NULL : malloc(sizeof(*a));
	if (!err && !a)
		err = weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	pthread_mutex_lock(&lock);
	if (a) {
		*a = (struct weft_mpi_attrs){.next = head->attrs, .key = key, .value = value};
		head->attrs = a;
	} else {
		key_unref_locked(key);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* The value behind a key of the ABI; true: it is one. */
static bool predefined_get(int key, void **value_p, int *flag)
{
	*flag = 1;
	switch (key) {
	case MPI_TAG_UB:
		*value_p = &tag_ub;
		return true;
	case MPI_IO:
		*value_p = &io_rank;
		return true;
	case MPI_HOST:
		*value_p = &host_rank;
		return true;
	case MPI_WTIME_IS_GLOBAL:
		*value_p = &wtime_global;
		return true;
	case MPI_LASTUSEDCODE:
		*value_p = &weft_mpi_last_used_code;
		return true;
	case MPI_APPNUM:
		*value_p = &appnum;
		*flag = have_appnum;
		return true;
	case MPI_UNIVERSE_SIZE:
		*value_p = &universe;
		*flag = have_universe;
		return true;
	default:
		return false;
	}
}

/* The same for a window's. */
static bool window_get(struct weft_mpi_head *head, int key, void **value_p, int *flag)
{
	struct weft_mpi_win *w = (struct weft_mpi_win *)(void *)head;

	*flag = 1;
	switch (key) {
	case MPI_WIN_BASE:
		*value_p = w->base;
		return true;
	case MPI_WIN_SIZE:
		*value_p = &w->size;
		return true;
	case MPI_WIN_DISP_UNIT:
		*value_p = &w->disp_unit;
		return true;
	case MPI_WIN_CREATE_FLAVOR:
		*value_p = &w->flavor;
		return true;
	case MPI_WIN_MODEL:
		*value_p = &w->model;
		return true;
	case MPIX_WIN_PATHS:
		*value_p = w->paths;
		return true;
	default:
		return false;
	}
}

/* Is key one of the ABI's, for objects of that kind? */
static bool abi_get(struct weft_mpi_head *head, int key, void **value_p, int *flag)
{
	if (head->kind == WEFT_MPI_COMM)
		return predefined_get(key, value_p, flag);
	return head->kind == WEFT_MPI_WIN && window_get(head, key, value_p, flag);
}

/* What other languages see of what C sees as value. */
static MPI_Aint abi_number(int key, const void *value)
{
	if (key == MPI_WIN_BASE || key == MPIX_WIN_PATHS)
		return (MPI_Aint)(intptr_t)value;
	return key == MPI_WIN_SIZE ? *(const MPI_Aint *)value : *(const int *)value;
}

static int attr_get(struct weft_mpi_head *head, int key, void *out, int *flag)
{
	void *value = NULL;
	MPI_Aint number = 0;

	if (abi_get(head, key, &value, flag)) {
		if (*flag)
			number = abi_number(key, value);
	} else {
		pthread_mutex_lock(&lock);
		struct keyval *k = key_locked(key, head->kind);
		struct weft_mpi_attrs *a = k ? *find_locked(head, key) : NULL;
		*flag = a != NULL;
		value = a ? as_pointer(&a->value) : NULL;
		number = a ? as_number(&a->value) : 0;
		pthread_mutex_unlock(&lock);
		if (!k)
			return weft_mpi_err(MPI_ERR_KEYVAL, "invalid key %d (freed or wild)", key);
	}
	if (*flag) {
		*(void **)out = value;
		weft_mpi_lang_got(value, number);
	}
	return MPI_SUCCESS;
}

int weft_mpi_attrs_copy(struct weft_mpi_head *from, struct weft_mpi_head *to)
{
	int n = 0, err = MPI_SUCCESS;

	pthread_mutex_lock(&lock);
	for (struct weft_mpi_attrs *a = from->attrs; a; a = a->next)
		n++;
	int *order = n ? malloc((size_t)n * sizeof(*order)) : NULL;
	int i = n;
	for (struct weft_mpi_attrs *a = from->attrs; a && order; a = a->next)
		order[--i] = a->key;
	pthread_mutex_unlock(&lock);
	if (n && !order)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	for (i = 0; i < n && !err; i++) {
		struct value value = {0}, copy = {0};
		int flag = 0;
		pthread_mutex_lock(&lock);
		struct weft_mpi_attrs *a = *find_locked(from, order[i]);
		struct keyval *k = a ? key_locked(order[i], from->kind) : NULL;
		if (k) {
			k->refs++;
			value = a->value;
		}
		pthread_mutex_unlock(&lock);
		if (!k)
			continue;
		err = call_copy(k, from, order[i], &value, &copy, &flag);
		struct weft_mpi_attrs *b = !err && flag ? malloc(sizeof(*b)) : NULL;
		if (!err && flag && !b)
			err = weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
		pthread_mutex_lock(&lock);
		if (b) {
			*b = (struct weft_mpi_attrs){
				.next = to->attrs, .key = order[i], .value = copy};
			to->attrs = b;
		} else {
			key_unref_locked(order[i]);
		}
		pthread_mutex_unlock(&lock);
	}
	free(order);
	return err;
}

int weft_mpi_attrs_free(struct weft_mpi_head *head)
{
	int err = MPI_SUCCESS;

	while (!err) {
		pthread_mutex_lock(&lock);
		int key = head->attrs ? head->attrs->key : MPI_KEYVAL_INVALID;
		pthread_mutex_unlock(&lock);
		if (key == MPI_KEYVAL_INVALID)
			break;
		err = attr_delete(head, key);
	}
	return err;
}

/* ---- MPI's functions ---------------------------------------------------------------------- */

typedef void (*plain)(void);

int weft_mpi_Comm_create_keyval(MPI_Comm_copy_attr_function *copy,
				MPI_Comm_delete_attr_function *delete, int *comm_keyval,
				void *extra_state)
{
	return key_create(WEFT_MPI_COMM, (plain)copy, (plain) delete, comm_keyval, extra_state);
}

int weft_mpi_Type_create_keyval(MPI_Type_copy_attr_function *copy,
				MPI_Type_delete_attr_function *delete, int *type_keyval,
				void *extra_state)
{
	return key_create(WEFT_MPI_TYPE, (plain)copy, (plain) delete, type_keyval, extra_state);
}

int weft_mpi_Win_create_keyval(MPI_Win_copy_attr_function *copy,
			       MPI_Win_delete_attr_function *delete, int *win_keyval,
			       void *extra_state)
{
	return key_create(WEFT_MPI_WIN, (plain)copy, (plain) delete, win_keyval, extra_state);
}

int weft_mpi_Keyval_create(MPI_Copy_function *copy_fn, MPI_Delete_function *delete_fn, int *keyval,
			   void *extra_state)
{
	return key_create(WEFT_MPI_COMM, (plain)copy_fn, (plain)delete_fn, keyval, extra_state);
}

int weft_mpi_Comm_free_keyval(int *comm_keyval)
{
	return key_free(WEFT_MPI_COMM, comm_keyval);
}

int weft_mpi_Type_free_keyval(int *type_keyval)
{
	return key_free(WEFT_MPI_TYPE, type_keyval);
}

int weft_mpi_Win_free_keyval(int *win_keyval)
{
	return key_free(WEFT_MPI_WIN, win_keyval);
}

int weft_mpi_Keyval_free(int *keyval)
{
	return key_free(WEFT_MPI_COMM, keyval);
}

int weft_mpi_Comm_set_attr(MPI_Comm comm, int comm_keyval, void *attribute_val)
{
	return attr_set(&weft_mpi_comm_of(comm)->head, comm_keyval, attribute_val);
}

int weft_mpi_Comm_get_attr(MPI_Comm comm, int comm_keyval, void *attribute_val, int *flag)
{
	return attr_get(&weft_mpi_comm_of(comm)->head, comm_keyval, attribute_val, flag);
}

int weft_mpi_Comm_delete_attr(MPI_Comm comm, int comm_keyval)
{
	return attr_delete(&weft_mpi_comm_of(comm)->head, comm_keyval);
}

int weft_mpi_Attr_put(MPI_Comm comm, int keyval, void *attribute_val)
{
	return weft_mpi_Comm_set_attr(comm, keyval, attribute_val);
}

int weft_mpi_Attr_get(MPI_Comm comm, int keyval, void *attribute_val, int *flag)
{
	return weft_mpi_Comm_get_attr(comm, keyval, attribute_val, flag);
}

int weft_mpi_Attr_delete(MPI_Comm comm, int keyval)
{
	return weft_mpi_Comm_delete_attr(comm, keyval);
}

/* A datatype's head is its first member. */
static struct weft_mpi_head *type_head(MPI_Datatype datatype)
{
	return weft_mpi_object_find(datatype, WEFT_MPI_TYPE);
}

int weft_mpi_Type_set_attr(MPI_Datatype datatype, int type_keyval, void *attribute_val)
{
	return attr_set(type_head(datatype), type_keyval, attribute_val);
}

int weft_mpi_Type_get_attr(MPI_Datatype datatype, int type_keyval, void *attribute_val, int *flag)
{
	return attr_get(type_head(datatype), type_keyval, attribute_val, flag);
}

int weft_mpi_Type_delete_attr(MPI_Datatype datatype, int type_keyval)
{
	return attr_delete(type_head(datatype), type_keyval);
}

int weft_mpi_Win_set_attr(MPI_Win win, int win_keyval, void *attribute_val)
{
	return attr_set(&weft_mpi_window(win)->head, win_keyval, attribute_val);
}

int weft_mpi_Win_get_attr(MPI_Win win, int win_keyval, void *attribute_val, int *flag)
{
	return attr_get(&weft_mpi_window(win)->head, win_keyval, attribute_val, flag);
}

int weft_mpi_Win_delete_attr(MPI_Win win, int win_keyval)
{
	return attr_delete(&weft_mpi_window(win)->head, win_keyval);
}
