/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ofi_lib.c - libfabric, loaded at run time, and an endpoint of one of its providers.
 *
 * Only five of its functions are symbols; all others are reached through the objects they make.
 */
#include "net/ofi/ofi.h"

#include <stdio.h>

#if __has_include(<rdma/fabric.h>)

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/settings.h"
#include "net/ofi/ofi_int.h"

static struct {
	void *handle;
	char why[160];
	uint32_t (*version)(void);
	int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *,
		       struct fi_info **);
	void (*freeinfo)(struct fi_info *);
	struct fi_info *(*dupinfo)(const struct fi_info *);
	int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
	const char *(*strerror)(int);
} lib;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *find_symbol(const char *name)
{
	void *p = dlsym(lib.handle, name);
	if (!p && !lib.why[0])
		snprintf(lib.why, sizeof lib.why, "libfabric.so.1 has no %s", name);
	return p;
}

static void load_libfabric(void)
{
	lib.handle = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!lib.handle) {
		snprintf(lib.why, sizeof lib.why, "%s", dlerror());
		return;
	}
	*(void **)&lib.version = find_symbol("fi_version");
	*(void **)&lib.getinfo = find_symbol("fi_getinfo");
	*(void **)&lib.freeinfo = find_symbol("fi_freeinfo");
	*(void **)&lib.dupinfo = find_symbol("fi_dupinfo");
	*(void **)&lib.fabric = find_symbol("fi_fabric");
	*(void **)&lib.strerror = find_symbol("fi_strerror");
}

static bool libfabric_loaded(void)
{
	pthread_once(&once, load_libfabric);
	return !lib.why[0];
}

const char *weft_net_ofi_lib_error(int code)
{
	return libfabric_loaded() ? lib.strerror(code < 0 ? -code : code)
				  : "libfabric is not there";
}

void weft_net_ofi_describe(char *buf, size_t size)
{
	if (!libfabric_loaded())
		snprintf(buf, size, "not there: %s", lib.why);
	else
		snprintf(buf, size, "libfabric %u.%u", FI_MAJOR(lib.version()),
			 FI_MINOR(lib.version()));
}

/* Asked for in this order unless the setting names one; what only emulates is not in it. */
static const char *const providers[] = {"efa", "cxi", "verbs;ofi_rxm", "tcp;ofi_rxm", "tcp"};

/* The best interface of one provider, or NULL. */
static struct fi_info *best_of_provider(const char *provider, const char *interface, uint64_t caps)
{
	struct fi_info *hints = lib.dupinfo(NULL), *found = NULL;
	if (!hints)
		return NULL;
	hints->caps = caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	/* Else providers set aside memory for many thousands. */
	hints->tx_attr->size = WEFT_OFI_N_SMALL + WEFT_OFI_N_LARGE;
	hints->rx_attr->size = WEFT_OFI_N_RX;
	hints->tx_attr->msg_order = FI_ORDER_SAS | (caps & FI_WRITE ? FI_ORDER_SAW : 0);
	hints->rx_attr->msg_order = hints->tx_attr->msg_order;
	hints->fabric_attr->prov_name = strdup(provider);
	if (*interface && strcmp(provider, "shm") != 0)
		hints->domain_attr->name = strdup(interface);
	int code = lib.getinfo(WEFT_OFI_VERSION, NULL, NULL, 0, hints, &found);
	lib.freeinfo(hints);
	if (code)
		return NULL;
	if (found->ep_attr->max_msg_size < WEFT_OFI_MAX_PAYLOAD + sizeof(struct weft_ofi_frame)) {
		lib.freeinfo(found);
		return NULL;
	}
	return found;
}

/* With reads, writes and atomics, or less, as is wanted and there. */
static void ask_for(struct weft_ofi *o, const char *provider, const char *interface)
{
	const uint64_t reads = FI_MSG | FI_RMA | FI_READ | FI_REMOTE_READ;
	/* A rail that is taken up again would have to wait for both. */
	bool rma = weft_setting_bool(WEFT_SET_OFI_RMA) && !o->job.revivable;
	const char *put = weft_setting_str(WEFT_SET_OFI_PUT);
	bool writes = rma && (!strcmp(put, "on") ||
			      (!strcmp(put, "auto") && strcmp(provider, "shm") != 0));
	if (writes)
		o->info = best_of_provider(provider, interface,
					   reads | FI_WRITE | FI_REMOTE_WRITE | FI_ATOMIC);
	o->atomics = o->info;
	if (writes && !o->info)
		o->info = best_of_provider(provider, interface, reads | FI_WRITE | FI_REMOTE_WRITE);
	o->put = o->info && o->info->ep_attr->max_msg_size >= WEFT_OFI_MAX_LARGE;
	if (rma && !o->info)
		o->info = best_of_provider(provider, interface, reads);
	o->rma = o->info;
	if (!o->info)
		o->info = best_of_provider(provider, interface, FI_MSG);
}

static weft_err choose_provider(struct weft_ofi *o)
{
	const char *wish = weft_setting_str(WEFT_SET_OFI_PROVIDER);
	const char *interface =
		o->job.interface ? o->job.interface : weft_setting_str(WEFT_SET_TCP_INTERFACE);
	if (*wish)
		ask_for(o, wish, interface);
	for (size_t i = 0; !*wish && !o->info && i < weft_countof(providers); i++)
		ask_for(o, providers[i], interface);
	if (!o->info) {
		weft_error("ofi: libfabric has no provider%s%s that can send reliable, ordered "
			   "messages here (see: fi_info)",
			   *wish ? " " : "", wish);
		return *wish ? WEFT_ERR_ARG : WEFT_ERR_UNSUPPORTED;
	}
	snprintf(o->provider, sizeof o->provider, "%s", o->info->fabric_attr->prov_name);
	return WEFT_OK;
}

static weft_err report_failure(const char *what, int code)
{
	weft_error("ofi: %s: %s", what, weft_net_ofi_lib_error(code));
	return code == -FI_ENOMEM ? WEFT_ERR_NOMEM : WEFT_ERR_SYS;
}

/* A completion queue that one can sleep on, else one that must be polled. */
static int open_cq(struct weft_ofi *o)
{
	struct fi_cq_attr attr = {
		.size = WEFT_OFI_N_SMALL + WEFT_OFI_N_LARGE + WEFT_OFI_N_RX,
		.format = FI_CQ_FORMAT_MSG,
		.wait_obj = FI_WAIT_FD,
	};
	int code = -FI_ENOSYS;
	o->cq_fd = -1;
	if (!weft_net_ofi_lacks.wait_fd)
		code = fi_cq_open(o->domain, &attr, &o->cq, NULL);
	if (!code && fi_control(&o->cq->fid, FI_GETWAIT, &o->cq_fd) == 0)
		return 0;
	if (!code)
		fi_close(&o->cq->fid);
	o->cq = NULL;
	o->cq_fd = -1;
	attr.wait_obj = FI_WAIT_NONE;
	return fi_cq_open(o->domain, &attr, &o->cq, NULL);
}

static weft_err open_objects(struct weft_ofi *o)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE, .count = (size_t)o->job.size};
	int code = lib.fabric(o->info->fabric_attr, &o->fabric, NULL);
	if (code)
		return report_failure("cannot open the fabric", code);
	code = fi_domain(o->fabric, o->info, &o->domain, NULL);
	if (code)
		return report_failure("cannot open the network device", code);
	code = fi_av_open(o->domain, &av, &o->av, NULL);
	if (!code)
		code = open_cq(o);
	if (!code)
		code = fi_endpoint(o->domain, o->info, &o->ep, NULL);
	if (!code)
		code = fi_ep_bind(o->ep, &o->av->fid, 0);
	if (!code)
		code = fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!code)
		code = fi_enable(o->ep);
	if (code)
		return report_failure("cannot open an endpoint", code);
	if (o->info->domain_attr->mr_mode & FI_MR_LOCAL) {
		code = fi_mr_reg(o->domain, o->slab, o->slab_bytes,
				 FI_SEND | FI_RECV | FI_READ | FI_WRITE, 0, 0, 0, &o->mr, NULL);
		if (code)
			return report_failure("cannot register memory", code);
		o->desc = fi_mr_desc(o->mr);
	}
	return WEFT_OK;
}

weft_err weft_net_ofi_lib_open(struct weft_ofi *o)
{
	if (!libfabric_loaded()) {
		weft_info("ofi: %s", lib.why);
		return WEFT_ERR_UNSUPPORTED;
	}
	weft_err err = choose_provider(o);
	if (!err)
		err = open_objects(o);
	if (err)
		weft_net_ofi_lib_close(o);
	return err;
}

void weft_net_ofi_lib_close(struct weft_ofi *o)
{
	struct fid *all[] = {
		o->ep ? &o->ep->fid : NULL,         o->mr ? &o->mr->fid : NULL,
		o->cq ? &o->cq->fid : NULL,         o->av ? &o->av->fid : NULL,
		o->domain ? &o->domain->fid : NULL, o->fabric ? &o->fabric->fid : NULL,
	};
	for (size_t i = 0; i < weft_countof(all); i++)
		if (all[i])
			fi_close(all[i]);
	o->ep = NULL;
	o->mr = NULL;
	o->cq = NULL;
	o->av = NULL;
	o->domain = NULL;
	o->fabric = NULL;
	if (o->info)
		lib.freeinfo(o->info);
	o->info = NULL;
}

#else

void weft_net_ofi_describe(char *buf, size_t size)
{
	snprintf(buf, size, "not there: built without libfabric's headers");
}

#endif
