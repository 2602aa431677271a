// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Counts how often each connection enters a state of congestion control that is not Open.
 *
 * Attached to the tracepoint tcp_cong_state_set: recoveries are over before a poll has seen them. Connections of
 * all network namespaces are counted, by the cookie that sock_diag shows. One that never leaves Open takes no place in the map,
 * and the least recently used one goes when it is full.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* TCP_CA_Open to TCP_CA_Loss. */
#define OPEN 0
#define STATES 5

struct entered {
	__u32 times[STATES];
	__u32 now;
};

_Static_assert(sizeof(struct entered) == 24, "crates/agents/src/host/ca_entries.rs reads it");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct entered);
} entered SEC(".maps");

/* The kernel holds the socket's lock: nobody else writes to its place. */
SEC("tp_btf/tcp_cong_state_set")
int cong_state(__u64 *ctx)
{
	__u32 state = ctx[1] & 0xff;
	struct entered *known, first = {};
	__u64 cookie;

	if (state >= STATES)
		return 0;
	cookie = bpf_get_socket_cookie((void *)ctx[0]);
	known = bpf_map_lookup_elem(&entered, &cookie);
	if (known) {
		/* A timer that expires again sets Loss again. */
		if (known->now != state)
			known->times[state]++;
		known->now = state;
		return 0;
	}
	if (state == OPEN)
		return 0;
	first.times[state] = 1;
	first.now = state;
	bpf_map_update_elem(&entered, &cookie, &first, BPF_ANY);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
