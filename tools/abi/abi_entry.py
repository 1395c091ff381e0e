# SPDX-License-Identifier: BSD-3-Clause
"""Writes the entry points: state and argument checks, int forms on top of the large-count ones.

A function is described by what its table row says; the rules below go by the types of parameters and
by their kinds, the standard's words for what an argument is.  The few exceptions are listed, not coded.
"""
import re

from abi_table import coll_forms

# May be called before MPI_Init and after MPI_Finalize.
ANY_TIME = re.compile(
    r"^MPI_(Init(_thread|ialized)?|Finalized|Get_version|Get_library_version|Abi_\w+|Info_\w+|"
    r"Error_(class|string)|Add_error_\w+|Remove_error_\w+|Session_\w+|\w+_create_errhandler|"
    r"Errhandler_free|Abort|Pcontrol|Status_\w+|Get_hw_resource_info|T_\w+|Group_from_session_pset|"
    r"Wtime|Wtick|Aint_\w+|\w+_(to|from)int|Get_address)$")

# MPI_ handle type -> (lookup function, error class, word)
HANDLES = {
    "MPI_Comm": ("comm", "MPI_ERR_COMM", "communicator"),
    "MPI_Group": ("group", "MPI_ERR_GROUP", "group"),
    "MPI_Datatype": ("type", "MPI_ERR_TYPE", "datatype"),
    "MPI_Op": ("op", "MPI_ERR_OP", "operation"),
    "MPI_Info": ("info", "MPI_ERR_INFO", "info object"),
    "MPI_Errhandler": ("errhandler", "MPI_ERR_ERRHANDLER", "error handler"),
    "MPI_Win": ("win", "MPI_ERR_WIN", "window"),
    "MPI_File": ("file", "MPI_ERR_FILE", "file"),
    "MPI_Session": ("session", "MPI_ERR_SESSION", "session"),
}

# Handle parameters that are not looked at here: significant on some ranks only, or checked inside.
UNCHECKED = {
    ("MPI_Intercomm_create", "peer_comm"),
    ("MPI_Abort", "comm"),
    # The null handles have names.
    ("MPI_Comm_get_name", "comm"),
    ("MPI_Type_get_name", "datatype"),
    ("MPI_Win_get_name", "win"),
    # The root's alone.
    ("MPI_Comm_accept", "info"),
    ("MPI_Comm_connect", "info"),
    ("MPI_Comm_spawn", "info"),
    # Means nothing to MPI_NO_OP.
    ("MPI_Get_accumulate", "origin_datatype"),
    ("MPI_Get_accumulate_c", "origin_datatype"),
    ("MPI_Rget_accumulate", "origin_datatype"),
    ("MPI_Rget_accumulate_c", "origin_datatype"),
}

# May be null.
NULLABLE = {("MPI_Info_get_string", "value"), ("MPI_Session_get_nth_pset", "pset_name"),
            # The root's alone, and checked there.
            ("MPI_Comm_accept", "port_name"), ("MPI_Comm_connect", "port_name"), ("MPI_Comm_spawn", "command")}

# Of files, without a file that the error could belong to.
NO_FILE = re.compile(r"^MPI_(File_(open|delete)|Register_datarep(_c)?)$")

# How much data there is: never negative.
COUNTS = ("POLYXFER_NUM_ELEM_NNI", "POLYXFER_NUM_ELEM", "XFER_NUM_ELEM_NNI", "XFER_NUM_ELEM",
          "POLYDTYPE_NUM_ELEM_NNI", "POLYDTYPE_NUM_ELEM", "POLYNUM_ELEM")
# Of such a kind, and may be negative; and those whose own message says more.
NOT_COUNTS = {"stride", "blocklength"}
OUT_SKIP = {"void *", "char **", "char ***", "MPI_Status *"}

# What mpi/p2p/fast.h and mpi/rma/fast.h try first.
FAST = {"MPI_Send", "MPI_Isend", "MPI_Irecv", "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Fetch_and_op",
        "MPI_Compare_and_swap", "MPI_Win_flush", "MPI_Win_flush_local"}

# Called by a user-level thread with a small stack, these run on a larger one (wait/stack.h): collectives,
# what makes communicators and datatypes, and what deals with text.  All others need at most 1 KiB:
# test/mpi/ult_stack.c.
DEEP = re.compile(
    r"^MPI_(I?(allgather|alltoall|barrier|bcast|exscan|gather|scatter|reduce(_scatter)?(_block)?|allreduce|scan|"
    r"neighbor_\w+)[vw]?(_init)?|Comm_(i?dup|i?dup_with_info|split|split_type|create|create_group|free|disconnect)|"
    r"Intercomm_(create|merge)|Cart_(create|sub|map)|(Dist_)?graph_(create|create_adjacent|map)|Dims_create|"
    r"Sendrecv_replace|Type_(create_\w+|indexed|vector|contiguous|dup|[sg]et_name)|(Comm|Win)_[sg]et_name|"
    r"(Comm|Win)_[sg]et_info|File_(open|close|delete|sync|i?(read|write)\w*|[sg]et_(view|size|info|atomicity|byte_offset)|preallocate|seek\w*|get_position_shared|get_type_extent)|Register_datarep|Win_(create|allocate|allocate_shared|create_dynamic|fence|free)|Info_\w+|Error_string|Get_(processor_name|library_version|hw_resource_info)|"
    r"T_(cvar|pvar|category)_(get_info|get_index|read|write))(_c)?$", re.I)
# Calls that may wait: `weft doctor` says for what (wait/note.h).
WAITS_FOR_MESSAGE = re.compile(r"^MPI_(Recv|Probe|Mprobe|Sendrecv|Sendrecv_replace)(_c)?$")
WAITS_TO_SEND = re.compile(r"^MPI_[SRB]?send(_c)?$", re.I)
WAITS_FOR_REQUESTS = re.compile(r"^MPI_Wait(all|any|some)?$")
WAITS_FOR_ALL = re.compile(
    r"^MPI_((allgather|alltoall|barrier|bcast|exscan|gather|scatter|reduce(_scatter)?(_block)?|allreduce|scan|"
    r"neighbor_(allgather|alltoall))[vw]?|Comm_(dup|dup_with_info|split|split_type|create|free|disconnect)|"
    r"Win_(create(_dynamic)?|allocate(_shared)?)|Intercomm_merge|Cart_(create|sub)|(Dist_)?graph_(create|create_adjacent))(_c)?$", re.I)
WAITS_WITH_FILE = re.compile(
    r"^MPI_File_(open|close|set_(view|size|info|atomicity)|preallocate|sync|seek_shared|(read|write)(_at)?_all(_begin|_end)?|"
    r"(read|write)_ordered(_begin|_end)?)(_c)?$")
# All members of the window; and others, which may wait for a lock or for some members.
WAITS_WITH_WINDOW = re.compile(r"^MPI_Win_(fence|free)$")
WAITS_AT_WINDOW = re.compile(r"^MPI_Win_(start|complete|wait|lock|unlock)$")
# What WEFT_CHECK looks at.
CHECKED_COLLECTIVES = re.compile(
    r"^MPI_I?(neighbor_(allgather|alltoall)|allgather|alltoall|barrier|bcast|exscan|gather|scatter|reduce(_scatter)?(_block)?|allreduce|scan)[vw]?(_init)?(_c)?$",
    re.I)
# Collective over a communicator, too: what makes communicators, windows and files of it.
CHECKED_MAKERS = re.compile(
    r"^MPI_(Comm_(create|i?dup(_with_info)?|split(_type)?|accept|connect|spawn(_multiple)?)|Intercomm_(create|merge)|"
    r"Cart_(create|sub)|Graph_create|Dist_graph_create(_adjacent)?|"
    r"Win_(create(_dynamic)?|allocate(_shared)?)|File_open)(_c)?$")
# All members give as much.
CHECKED_AMOUNTS = re.compile(r"^MPI_I?(bcast|exscan|reduce(_scatter_block)?|allreduce|scan)(_init)?(_c)?$", re.I)
COMPLETES = re.compile(r"^MPI_(Wait|Test)(all|any|some)?$|^MPI_(Request_free|Start|Startall|Cancel)$")
HANDLE_POINTERS = {f"MPI_{t} *" for t in ("Comm", "Group", "Datatype", "Op", "Info", "Errhandler", "Win", "File", "Session",
                                          "Request")}
# Callbacks make a signature that the rule for copies does not know; they are short calls.
NEVER_DEEP = re.compile(r"^MPI_(\w+_(to|from)int|Type_create_keyval)$")

# Constructors of datatypes whose counts MPI_Type_get_envelope_c reports as large ones.
LARGE_TYPES = re.compile(r"^MPI_Type_(contiguous|vector|indexed|create_\w+)_c$")

# The int forms of these build their arguments in a way of their own.
SPECIAL = {
    "MPI_Type_get_envelope": """
	MPI_Count ni = 0, na = 0, nl = 0, nd = 0;
	int err = weft_mpi_Type_get_envelope(datatype, &ni, &na, &nl, &nd, combiner);
	if (!err && nl)
		err = weft_mpi_err(MPI_ERR_TYPE, "the datatype was made with large counts: use MPI_Type_get_envelope_c");
	if (!err) {
		*num_integers = (int)ni;
		*num_addresses = (int)na;
		*num_datatypes = (int)nd;
	}
	return err ? weft_mpi_raise(err, "MPI_Type_get_envelope") : MPI_SUCCESS;
""",
    "MPI_Type_get_contents": """
	if (max_integers < 0 || max_addresses < 0 || max_datatypes < 0)
		return weft_mpi_raise(weft_mpi_err(MPI_ERR_ARG, "an array length is negative"), "MPI_Type_get_contents");
	int err = weft_mpi_Type_get_contents(datatype, max_integers, max_addresses, 0, max_datatypes,
					     array_of_integers, array_of_addresses, NULL, array_of_datatypes);
	return err ? weft_mpi_raise(err, "MPI_Type_get_contents") : MPI_SUCCESS;
""",
}

# What they make gets the error handler that they are given, and so do their own errors.
HANDLER_GIVEN = ("MPI_Session_init", "MPI_Comm_create_from_group", "MPI_Intercomm_create_from_groups")


class Entry:
    def __init__(self, function, implemented):
        self.f = function
        self.implemented = implemented
        self.lines = []

    def emit(self, text):
        self.lines.append(text)

    # -- pieces -------------------------------------------------------------------------------

    def raiser(self):
        """Who hears of an error: (C expression prefix)."""
        if self.f.name == "MPI_Win_free":
            return "weft_mpi_raise_win(win ? *win : MPI_WIN_NULL, "
        if self.f.name == "MPI_File_close":
            return "weft_mpi_raise_file(fh ? *fh : MPI_FILE_NULL, "
        if NO_FILE.match(self.f.name):
            return "weft_mpi_raise_file(MPI_FILE_NULL, "
        if self.f.name in HANDLER_GIVEN:
            return "weft_mpi_raise_new(errhandler, "
        for p in self.f.params:
            if p.is_array or p.is_const:
                continue
            if p.type == "MPI_Comm" and (self.f.name, p.name) not in UNCHECKED:
                return f"weft_mpi_raise_comm({p.name}, "
            if p.type == "MPI_Win":
                return f"weft_mpi_raise_win({p.name}, "
            if p.type == "MPI_File":
                return f"weft_mpi_raise_file({p.name}, "
            if p.type == "MPI_Session":
                return f"weft_mpi_raise_session({p.name}, "
        return "weft_mpi_raise("

    def fail(self, call):
        return f'return {self.raiser()}{call}, "{self.f.name}")'

    def check(self, cond, call):
        self.emit(f"\tif (weft_unlikely({cond}))\n\t\t{self.fail(call)};")

    def rank_after(self, datatype):
        """The source or destination of the data of that type, of a point-to-point function."""
        after = self.f.params[self.f.params.index(datatype):]
        return next((p for p in after if p.kind == "RANK" and p.name in ("dest", "source")), None)

    def check_handles(self):
        f = self.f
        for p in f.params:
            if p.is_array or p.is_const or p.type not in HANDLES or (f.name, p.name) in UNCHECKED:
                continue
            noun, code, word = HANDLES[p.type]
            cond = f"!weft_mpi_{noun}_of({p.name})"
            if p.type == "MPI_Info" and not f.name.startswith("MPI_Info_"):
                cond = f"{p.name} != MPI_INFO_NULL && {cond}"
            if p.type == "MPI_File" and f.name.endswith("errhandler"):
                cond = f"{p.name} != MPI_FILE_NULL && {cond}"
            if p.type == "MPI_Datatype":
                if f.has("root") and f.has("sendbuf") and p.name in ("sendtype", "recvtype"):
                    continue
                if f.has("root"):
                    cond = f"root != MPI_PROC_NULL && {cond}"
                elif self.rank_after(p):
                    # No data moves, so no datatype is needed.
                    cond += f" && !({self.rank_after(p).name} == MPI_PROC_NULL && {p.name} == MPI_DATATYPE_NULL)"
                elif p.name == "sendtype" and f.has("sendbuf") and not f.has("dest"):
                    cond = f"sendbuf != MPI_IN_PLACE && {cond}"
            if p.type == "MPI_Op" and f.has("root"):
                cond = f"root != MPI_PROC_NULL && {cond}"
            self.check(cond, f'weft_mpi_bad_handle({code}, "{word}", {p.name})')

    def check_counts(self):
        f = self.f
        if f.has("root") and f.has("sendbuf") and f.has("recvtype"):
            return  # significant on some ranks only
        for p in f.inputs(*COUNTS):
            n = p.name
            if n in NOT_COUNTS or not any(q.kind == "DATATYPE" for q in f.params):
                continue
            cond = f"{n} < 0"
            if n == "sendcount" and f.has("sendbuf") and not f.has("dest"):
                cond = f"{n} < 0 && sendbuf != MPI_IN_PLACE"
            self.check(cond, f'weft_mpi_bad_count("{n}", {n})')

    def takes_wildcards(self, rank):
        """Is that parameter where a receive or a probe names its source?"""
        return rank.name == "source" and not self.f.inputs("PARTITION")

    def check_values(self):
        """Ranks and tags mean something in a communicator only: a status may hold any."""
        f = self.f
        self.check_counts()
        if not f.inputs("COMMUNICATOR"):
            return
        rank = None  # the last one that was named: a tag belongs to it
        for p in f.inputs("RANK", "TAG"):
            n = p.name
            if p.kind == "TAG":
                wild = rank and self.takes_wildcards(rank)
                cond = f"{n} < 0" + (f" && {n} != MPI_ANY_TAG" if wild else "")
                self.check(cond, f"weft_mpi_bad_tag({n})")
                continue
            rank = p
            if n in ("dest", "source"):
                wild = "true" if self.takes_wildcards(p) else "false"
                self.check(f"weft_mpi_rank_wrong(comm, {n}, {wild})", f"weft_mpi_bad_rank(comm, {n}, {wild})")
            elif n == "root":
                self.check("weft_mpi_root_wrong(comm, root)", "weft_mpi_bad_root(comm, root)")

    def check_pointers(self):
        f = self.f
        if f.name in ("MPI_Init", "MPI_Pcontrol"):
            return
        for p in f.params:
            if "(" in p.type or "function" in p.type or p.is_array or (f.name, p.name) in NULLABLE:
                continue
            if not p.type.endswith("*") or p.base in OUT_SKIP and not (
                    p.base == "MPI_Status *" and ("_set_" in f.name or p.is_const)):
                if not (p.base == "MPI_Status *" and f.name.startswith("MPI_Status_")):
                    continue
            if p.type in ("const void *", "void *") or p.name in ("argc", "argv"):
                continue
            self.check(f"!{p.name}", f'weft_mpi_bad_pointer("{p.name}")')

    # -- the call -----------------------------------------------------------------------------

    def array_length(self, p):
        """C expression of an int array's length."""
        f = self.f
        n = p.name
        if n in ("array_of_sizes", "array_of_subsizes", "array_of_starts", "array_of_gsizes"):
            return "ndims"
        if n.startswith("array_of_"):
            return "count"
        if "eighbor" in f.name:
            return f"weft_mpi_degree(comm, {'true' if n in ('recvcounts', 'rdispls', 'displs') else 'false'})"
        if "educe_scatter" in f.name:
            return "weft_mpi_comm_of(comm)->size"
        if f.has("root"):
            return "weft_mpi_root_peers(comm, root)"
        return "weft_mpi_comm_of(comm)->peers"

    def call(self):
        """Calls the implementation, converting what differs between the two forms."""
        f = self.f
        if f.name in SPECIAL:
            self.emit(SPECIAL[f.name].rstrip("\n").lstrip("\n"))
            return
        args, before, after, frees, outs = [], [], [], [], []
        arrays = [(p, q) for p, q in zip(f.params, f.impl_params)
                  if p.is_array and p.type != q.type and p.is_const and p.base == "int"]
        if arrays:
            before.append("\tstruct weft_mpi_widen w = {0};")
            cond = []
            for p, q in arrays:
                skip = "NULL" if f.has("sendbuf") and p.name in ("sendcounts", "sdispls") and not f.has("root") \
                    and "eighbor" not in f.name else None
                src = f"sendbuf == MPI_IN_PLACE ? NULL : {p.name}" if skip else p.name
                before.append(f"\tconst MPI_Count *{p.name}_c = weft_mpi_widen(&w, {src}, {self.array_length(p)});")
            self_fail = self.fail("weft_mpi_no_memory()")
            before.append(f"\tif (weft_unlikely(w.failed)) {{\n\t\tweft_mpi_widen_free(&w);\n\t\t{self_fail};\n\t}}")
            frees.append("\tweft_mpi_widen_free(&w);")
        for p, q in zip(f.params, f.impl_params):
            if any(p is a for a, _ in arrays):
                args.append(f"(const {q.base} *){p.name}_c")
            elif p.type == q.type:
                args.append(p.name)
            elif p.type.endswith("*") and not p.is_const:
                wide = q.type[:-1].strip()
                init = f"*{p.name}" if p.name == "position" else "0"
                before.append(f"\t{wide} {p.name}_c = {init};")
                args.append(f"&{p.name}_c")
                narrow = p.type[:-1].strip()
                if narrow == "int":
                    outs.append(f"\t\t*{p.name} = weft_mpi_narrow({p.name}_c);")
                else:
                    outs.append(f"\t\t*{p.name} = {p.name}_c;")
            elif p.is_array:
                args.append(f"(const {q.base} *){p.name}")
            else:
                args.append(p.name)
        self.lines += before
        note = self.note()
        if note:
            self.emit(f"{note}\tweft_wait_note_set(&note);")
        first, last = self.checks()
        about = self.about()
        after = ""
        if about:
            self.emit("\tstruct weft_mpi_check_about *about = NULL;")
            first += f"\t\tabout = weft_mpi_check_about({about});\n"
            after = "\t\tweft_mpi_check_completed(about);\n"
        self.emit(f'\tunsigned hooked = 0;\n\tif (weft_mpi_hooked()) {{\n\t\thooked = weft_mpi_trace_call("{f.name}");\n{first}\t}}')
        self.emit(f"\tint err = {f.impl}({', '.join(args)});")
        self.emit("\tif (weft_unlikely(hooked)) {\n\t\tweft_mpi_trace_return(hooked);\n" + after +
                  (f"\t\tif (!err) {{\n{last}\t\t}}\n" if last else "") + "\t}")
        if note:
            self.emit("\tweft_wait_note_set(NULL);")
        self.lines += frees
        if LARGE_TYPES.match(f.name):
            self.emit("\tif (weft_likely(!err))\n\t\tweft_mpi_type_made_large(*newtype);")
        if outs:
            self.emit("\tif (weft_likely(!err)) {")
            self.lines += outs
            self.emit("\t}")
        self.emit(f"\tif (weft_unlikely(err))\n\t\t{self.fail('err')};\n\treturn MPI_SUCCESS;")

    def checks(self):
        """What WEFT_CHECK does before and after the call (mpi/aid/check.h)."""
        f = self.f
        where = f'"{f.name}", __builtin_return_address(0)'
        first, last = [], []
        form = CHECKED_COLLECTIVES.match(f.name)
        if form and f.has("comm"):
            count, datatype = next(((c, t) for c, t in (("count", "datatype"), ("recvcount", "recvtype"))
                                    if f.has(c) and f.has(t) and not f.param(c).is_array), ("-1", "MPI_DATATYPE_NULL"))
            if not CHECKED_AMOUNTS.match(f.name):
                count, datatype = "-1", "MPI_DATATYPE_NULL"
            root = "root" if f.has("root") else "-1"
            first.append(f"weft_mpi_check_coll({where}, comm, {root}, {count}, {datatype}, "
                         f"{'op' if f.has('op') else 'MPI_OP_NULL'});")
        if CHECKED_MAKERS.match(f.name):
            over = next(n for n in ("comm", "comm_old", "local_comm", "intercomm") if f.has(n) and f.param(n).type == "MPI_Comm")
            first.append(f"weft_mpi_check_coll_makes({where}, {over}, {'root' if f.has('root') else '-1'});")
        if f.name in ("MPI_Comm_free", "MPI_Comm_disconnect"):
            first.append(f'weft_mpi_check_coll_end("{f.name}", *comm);')
        pointer = [p for p in f.params if p.type in HANDLE_POINTERS and not p.is_const and not p.is_array]
        if re.search(r"_(free|disconnect)$|^MPI_File_close$", f.name):
            first += [f"weft_mpi_check_freed({where}, *{p.name});" for p in pointer]
        elif not COMPLETES.match(f.name) and "_f90_" not in f.name:  # those are never freed
            last += [f"weft_mpi_check_made({where}, *{p.name});" for p in pointer]
        other = "dest" if f.has("dest") else "source" if f.has("source") else None
        if other and f.has("buf") and f.has("count") and f.has("datatype") and f.has("tag") and f.has("comm") \
                and not f.name.endswith(("_init", "_init_c")):
            send = "true" if other == "dest" else "false"
            data = f"{send}, buf, count, datatype, {other}, tag, comm"
            if f.has("request"):
                last.append(f"weft_mpi_check_started({where}, {data}, *request);")
            else:
                first.append(f"weft_mpi_check_used({where}, {data});")
        if f.name == "MPI_Precv_init":
            first.append(f"weft_mpi_check_place_said({where}, buf);")
        if not f.has("partitions"):
            first += [f"weft_mpi_check_message({where}, {m});" for m in self.messages()]
        return "".join(f"\t\t{c}\n" for c in first), "".join(f"\t\t\t{c}\n" for c in last)

    def about(self):
        """The requests that the call may end: how many, and where they stand; "": none."""
        f = self.f
        if not COMPLETES.match(f.name):
            return ""
        if f.has("request"):
            return "1, request"
        return f"{'incount' if f.has('incount') else 'count'}, array_of_requests"

    def messages(self):
        """What the call sends and receives as one message each: direction, buffer, count, datatype."""
        f = self.f
        if all(f.has(n) for n in ("sendbuf", "sendcount", "sendtype", "recvbuf", "dest", "source")):
            return ["true, sendbuf, sendcount, sendtype", "false, recvbuf, recvcount, recvtype"]
        if not all(f.has(n) for n in ("buf", "count", "datatype")) or f.has("partitions") or f.has("fh"):
            return []
        send = f.has("dest")
        recv = f.has("source") or f.has("message")
        return ["true, buf, count, datatype"] * send + ["false, buf, count, datatype"] * recv

    def note(self):
        """The fields of a note of what the call waits for, or None."""
        f = self.f
        form, wait_any, lock, fields = "WEFT_WAIT_ALL", "false", "false", {}
        comm = next((p for p in f.params if p.type == "MPI_Comm"), None) or \
            next((p for p in f.params if p.type == "MPI_Comm *"), None)
        if f.name == "MPI_Finalize":
            fields.update(object="MPI_COMM_WORLD", rank="-1")
        elif WAITS_FOR_REQUESTS.match(f.name):
            one = f.name == "MPI_Wait"
            form, wait_any = "WEFT_WAIT_REQUESTS", "true" if f.name[8:] in ("any", "some") else "false"
            fields.update(object="request" if one else "array_of_requests",
                          tag="1" if one else "incount" if f.has("incount") else "count")
        elif comm and (WAITS_FOR_MESSAGE.match(f.name) or WAITS_TO_SEND.match(f.name) or WAITS_FOR_ALL.match(f.name)):
            fields["object"] = comm.name if not comm.type.endswith("*") else f"*{comm.name}"
            if WAITS_FOR_MESSAGE.match(f.name):
                form = "WEFT_WAIT_RECV"
                fields.update(rank="source", tag="recvtag" if f.has("recvtag") else "tag")
            elif WAITS_TO_SEND.match(f.name):
                form = "WEFT_WAIT_SEND"
                fields.update(rank="dest", tag="tag")
            else:
                fields["rank"] = "root" if f.has("root") else "-1"
        elif WAITS_WITH_FILE.match(f.name):
            fields.update(object="comm" if comm else "weft_mpi_file_comm(%sfh)" % ("*" if f.name == "MPI_File_close" else ""),
                          rank="-1")
        elif WAITS_WITH_WINDOW.match(f.name):
            form = "WEFT_WAIT_FENCE"
            fields.update(object="*win" if f.name == "MPI_Win_free" else "win", rank="-1")
        elif WAITS_AT_WINDOW.match(f.name):
            form, lock = "WEFT_WAIT_WINDOW", "true" if f.name == "MPI_Win_lock" else "false"
            fields.update(object="win", rank="rank" if f.has("rank") else "-1")
        else:
            return None
        fields = {"call": "&waits", **fields, "since_ns": "0"}
        # Not by an initialiser: that would clear what is filled in before a sleep.
        return (f'\tstatic const struct weft_wait_call waits = {{"{f.name}", {form}, {wait_any}, {lock}}};\n'
                "\tstruct weft_wait_note note;\n" + "".join(f"\tnote.{k} = {v};\n" for k, v in fields.items()))

    # -- elsewhere --------------------------------------------------------------------------------

    def deep(self):
        """The same call on a larger stack; a function of its own, so that the small one holds less."""
        f = self.f
        fields, given, taken = [], [], []
        for p in f.params:
            rest = re.sub(r"^\[\]", "", p.suffix)
            fields.append(f"\t{p.type} (*{p.name}){rest};" if p.is_array else f"\t{p.text};")
            given.append(p.name)
            taken.append(f"c->{p.name}")
        return (f"struct {f.short}_call {{\n" + "\n".join(fields) + "\n\tint err;\n};\n\n"
                f"static void {f.short}_run(void *arg)\n{{\n\tstruct {f.short}_call *c = arg;\n"
                f"\tc->err = P{f.name}({', '.join(taken)});\n}}\n\n"
                f"static WEFT_NOINLINE {f.prototype(f.short + '_deep')}\n{{\n"
                f"\tstruct {f.short}_call c = {{{', '.join(given)}, 0}};\n"
                f"\tweft_wait_deep_stack({f.short}_run, &c);\n\treturn c.err;\n}}\n\n")

    # -- the whole ----------------------------------------------------------------------------

    def body(self):
        f = self.f
        if f.returns != "int" or f.name.endswith("_toint"):
            self.emit(f"\treturn {f.impl}({', '.join(p.name for p in f.params)});")
            return
        if f.name == "MPI_Pcontrol":
            self.emit("\treturn weft_mpi_Pcontrol(level);")
            return
        if f.name in FAST and self.implemented:
            args = ", ".join(p.name for p in f.params)
            self.emit(f"\tif (weft_likely(weft_mpi_fast_{f.name[4:]}({args})))\n\t\treturn MPI_SUCCESS;")
        if not ANY_TIME.match(f.name):
            self.emit(f'\tif (weft_unlikely(!weft_mpi_running()))\n\t\tweft_mpi_not_running("{f.name}");')
        if f.tool and self.implemented:
            self.emit(f"\treturn {f.impl}({', '.join(p.name for p in f.params)});")
            return
        if not self.implemented:
            if f.tool:
                self.emit("\treturn MPI_T_ERR_NOT_SUPPORTED;")
            else:
                self.emit(f"\t{self.fail('weft_mpi_unsupported()')};")
            return
        if f.tool:
            # Checks its own arguments: its errors are returned, never raised.
            self.emit(f"\treturn {f.impl}({', '.join(p.name for p in f.params)});")
            return
        self.check_handles()
        self.check_values()
        self.check_pointers()
        self.call()

    def text(self):
        f = self.f
        before = ""
        if self.implemented and DEEP.match(f.name) and not NEVER_DEEP.match(f.name):
            before = self.deep()
            self.emit(f"\tif (weft_unlikely(weft_wait_stack_is_small()))\n"
                      f"\t\treturn {f.short}_deep({', '.join(p.name for p in f.params)});")
        self.body()
        # The note is no array: a canary would be paid by each call, those of the fast path included.
        bare = "WEFT_BARE " if any("weft_wait_note note;" in line for line in self.lines) else ""
        return before + (f"{bare}WEFT_API {f.prototype('P' + f.name)}\n{{\n" + "\n".join(self.lines) + "\n}\n" +
                f"WEFT_API {f.prototype()} __attribute__((weak, alias(\"P{f.name}\")));\n")


ENTRY_TOP = """/* Generated by tools/gen_mpi.py from tools/abi/; entry points of MPI. */
#include "mpi/aid/check.h"
#include "mpi/entry.h"
#include "mpi/p2p/fast.h"
#include "mpi/rma/fast.h"
#include "wait/note.h"
#include "wait/stack.h"

#define WEFT_NOINLINE __attribute__((noinline))
#define WEFT_BARE __attribute__((no_stack_protector))
"""


def write_entries(functions, implemented, parts):
    """A list of `parts` C files that hold the entry points."""
    texts = [[] for _ in range(parts)]
    names = sorted(functions)
    for i, name in enumerate(names):
        f = functions[name]
        done = f.impl[len("weft_mpi_"):] in implemented
        texts[i * parts // len(names)].append(Entry(f, done).text())
    return [ENTRY_TOP + "\n" + "\n".join(t) for t in texts]


FORMS = ["weft_mpi_coll_run(&k)", "weft_mpi_coll_start(&k, request)", "weft_mpi_coll_init(&k, request)"]


def coll_params(f):
    """What X_args gets: the parameters of the blocking form but for the communicator."""
    return [p for p in f.impl_params if p.type != "MPI_Comm"]


def write_collectives(functions, collectives):
    """The three forms of each collective, around what checks and translates its arguments."""
    out = ["/* Generated by tools/gen_mpi.py from tools/abi/; the forms of each collective. */",
           '#include "mpi/coll/coll_call.h"', ""]
    for name in sorted(collectives):
        args = "".join(f", {p.name}" for p in coll_params(functions["MPI_" + name]))
        for form, end in zip(coll_forms(name), FORMS):
            f = functions["MPI_" + form]
            params = ", ".join(p.text for p in f.impl_params)
            out += [f"int {f.impl}({params})", "{", "\tstruct weft_mpi_coll_call k;",
                    f"\tweft_mpi_coll_open(&k, WEFT_COLL_{name.upper()}, comm);",
                    f"\tint err = weft_mpi_{name}_args(&k{args});",
                    f"\treturn err ? weft_mpi_coll_refuse(&k, err) : {end};", "}", ""]
    return "\n".join(out)


def write_impl_header(functions, collectives):
    out = ["/* Generated by tools/gen_mpi.py: what implements MPI. */",
           "#ifndef WEFT_GEN_MPI_IMPL_H", "#define WEFT_GEN_MPI_IMPL_H", "#include <mpi.h>", ""]
    seen = set()
    for f in functions.values():
        if f.impl in seen:
            continue
        seen.add(f.impl)
        args = ", ".join(p.text for p in f.impl_params if p.text != "...") or "void"
        star = "" if f.returns.endswith("*") else " "
        out.append(f"{f.returns}{star}{f.impl}({args});")
    out += ["", "struct weft_mpi_coll_call;"]
    for name in sorted(collectives):
        args = "".join(f", {p.text}" for p in coll_params(functions["MPI_" + name]))
        out.append(f"int weft_mpi_{name}_args(struct weft_mpi_coll_call *k{args});")
    out += ["", "#endif", ""]
    return "\n".join(out)


def write_list(functions, implemented):
    out = ['/* Generated by tools/gen_mpi.py: which functions are implemented. */',
           '#include "mpi/functions.h"', "", "const struct weft_mpi_function weft_mpi_functions[] = {"]
    for name in sorted(functions):
        f = functions[name]
        if not f.standard:
            continue
        done = "true" if f.impl[len("weft_mpi_"):] in implemented else "false"
        out.append(f'\t{{"{name}", {done}, "{f.tier}"}},')
    out += ["};", "", "const int weft_mpi_functions_count = "
            "(int)(sizeof(weft_mpi_functions) / sizeof(weft_mpi_functions[0]));", ""]
    return "\n".join(out)
