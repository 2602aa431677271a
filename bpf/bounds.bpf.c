// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * CUBIC within bounds: the kernel's own CUBIC, with a window that an agent keeps from being too large or too small.
 *
 * The agent registers `within` as a congestion control under a name of its own, and `adopt`, attached to a cgroup, gives it the
 * connections that programs of that cgroup have over CUBIC in the agent's network namespace. What bounds a connection has
 * stands in `bounds` by its socket's cookie; they hold until the time that the agent sets ever anew. A connection
 * without bounds, or without an agent any more, has what the kernel's CUBIC does and nothing else.
 *
 * Where the kernel has no struct_ops, `clamp` keeps windows from being too large, once a round trip.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "cubic.h"

#define SOL_TCP 6
#define TCP_CONGESTION 13
#define TCP_BPF_SNDCWND_CLAMP 1002

/* tcp_ca_state: nothing is lost and nothing is repaired. */
#define OPEN 0
/* Segments that one acknowledgement may set free for the sake of a lower bound. */
#define BURST 10
/* A clamp that clamps nothing. */
#define FREE (1u << 20)
/* The first word of icsk_ca_priv that CUBIC leaves free: two are used. */
#define FIRST_FREE 11
/* Let the system call go on. */
#define PASS 1

/* Of the kernel's structs, what is used. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
typedef struct {
	__s64 counter;
} atomic64_t;

struct sock_common {
	atomic64_t skc_cookie;
};

struct sock {
	struct sock_common __sk_common;
};

struct inet_connection_sock {
	__u8 icsk_ca_state : 5;
	__u64 icsk_ca_priv[13];
};

struct tcp_sock {
	__u32 snd_cwnd;
	__u32 snd_cwnd_cnt;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
	__u32 max_packets_out;
	__u64 tcp_mstamp;
};

/* The state of the kernel's CUBIC, in icsk_ca_priv. */
struct bictcp {
	__u32 epoch_start;
};
#pragma clang attribute pop

/* The agent's network namespace, and the name that it gives to the congestion control. */
const volatile __u64 netns = 0;
const volatile char name[NAME_LEN] = {};

/* Until when bounds hold (µs, CLOCK_MONOTONIC): an agent that dies or stands still bounds nobody. */
__u64 until = 0;
/* Changes to `bounds` so far. */
__u64 changes = 0;
/* Connections that were adopted. */
__u64 adopted = 0;

/* In segments; the lower is not above the upper, which is at least 2. An upper of 0: none. */
struct bound {
	__u32 lower;
	__u32 upper;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct bound);
} bounds SEC(".maps");

/* What `clamp` has set last. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} clamps SEC(".maps");

/*
 * The bounds that a connection has now. The time is that of the segment which has come last. They are looked up when they have changed
 * and kept behind CUBIC's state, in the memory that the kernel gives a congestion control: whoever reads the one has the other at
 * hand.
 */
static __always_inline struct bound bound_of(struct sock *sk)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	__u64 cookie, now = changes + 1, kept;
	struct bound found = {}, *in_map;

	if (((struct tcp_sock *)sk)->tcp_mstamp >= until)
		return found;
	if (bpf_core_type_size(struct bictcp) <= 8 * FIRST_FREE && icsk->icsk_ca_priv[FIRST_FREE] == now) {
		kept = icsk->icsk_ca_priv[FIRST_FREE + 1];
		found.lower = kept >> 32;
		found.upper = (__u32)kept;
		return found;
	}
	cookie = (__u64)sk->__sk_common.skc_cookie.counter;
	in_map = bpf_map_lookup_elem(&bounds, &cookie);
	if (in_map)
		found = *in_map;
	if (bpf_core_type_size(struct bictcp) <= 8 * FIRST_FREE) {
		icsk->icsk_ca_priv[FIRST_FREE] = now;
		icsk->icsk_ca_priv[FIRST_FREE + 1] = (__u64)found.lower << 32 | found.upper;
	}
	return found;
}

/* What is held at its bound begins anew from there once it is let go: CUBIC's curve would have run on meanwhile. */
static __always_inline void begin_anew(struct sock *sk)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;

	((struct bictcp *)icsk->icsk_ca_priv)->epoch_start = 0;
	((struct tcp_sock *)sk)->snd_cwnd_cnt = 0;
}

SEC("struct_ops")
void BPF_PROG(within_init, struct sock *sk)
{
	cubictcp_init(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(within_ssthresh, struct sock *sk)
{
	__u32 ssthresh = cubictcp_recalc_ssthresh(sk);
	struct bound bound = bound_of(sk);

	return bound.upper && bound.upper < ssthresh ? bound.upper : ssthresh;
}

SEC("struct_ops")
void BPF_PROG(within_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 lower, upper, step, freed, before = tp->snd_cwnd;
	struct bound bound;

	cubictcp_cong_avoid(sk, ack, acked);
	bound = bound_of(sk);
	lower = bound.lower;
	upper = bound.upper;
	if (!upper)
		return;
	/* What a route says is the last word. */
	if (lower > tp->snd_cwnd_clamp)
		lower = tp->snd_cwnd_clamp;
	/* Below it, the window would double in every round trip. */
	if (tp->snd_ssthresh > upper)
		tp->snd_ssthresh = upper;
	if (tp->snd_cwnd >= upper) {
		tp->snd_cwnd = upper;
		begin_anew(sk);
	} else if (tp->snd_cwnd < lower && icsk->icsk_ca_state == OPEN && tp->snd_cwnd >= tp->snd_ssthresh &&
		   tp->snd_cwnd < 2 * tp->max_packets_out) {
		/* As in slow start, which grows by itself, but not in bursts; nothing is raised that is not used. */
		freed = acked + (tp->snd_cwnd - before);
		step = freed >= BURST ? 1 : BURST - freed < acked ? BURST - freed : acked;
		tp->snd_cwnd = tp->snd_cwnd + step < lower ? tp->snd_cwnd + step : lower;
		begin_anew(sk);
	}
}

SEC("struct_ops")
void BPF_PROG(within_set_state, struct sock *sk, __u8 new_state)
{
	cubictcp_state(sk, new_state);
}

SEC("struct_ops")
void BPF_PROG(within_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	cubictcp_cwnd_event(sk, event);
}

SEC("struct_ops")
void BPF_PROG(within_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	cubictcp_acked(sk, sample);
}

SEC("struct_ops")
__u32 BPF_PROG(within_undo_cwnd, struct sock *sk)
{
	__u32 cwnd = tcp_reno_undo_cwnd(sk);
	struct bound bound = bound_of(sk);

	return bound.upper && bound.upper < cwnd ? bound.upper : cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops within = {
	.init = (void *)within_init,
	.ssthresh = (void *)within_ssthresh,
	.cong_avoid = (void *)within_cong_avoid,
	.set_state = (void *)within_set_state,
	.cwnd_event = (void *)within_cwnd_event,
	.pkts_acked = (void *)within_pkts_acked,
	.undo_cwnd = (void *)within_undo_cwnd,
	.name = "lasthop",
};

/* True if a connection that is established now is one over CUBIC in the agent's network namespace. */
static __always_inline int is_ours(struct bpf_sock_ops *ctx)
{
	char has[NAME_LEN] = {};

	if (ctx->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 0;
	if (bpf_get_netns_cookie(ctx) != netns || bpf_getsockopt(ctx, SOL_TCP, TCP_CONGESTION, has, sizeof(has)))
		return 0;
	return has[0] == 'c' && has[1] == 'u' && has[2] == 'b' && has[3] == 'i' && has[4] == 'c' && !has[5];
}

SEC("sockops")
int adopt(struct bpf_sock_ops *ctx)
{
	char other[NAME_LEN];
	int i;

	if (!is_ours(ctx))
		return PASS;
	for (i = 0; i < NAME_LEN; i++)
		other[i] = name[i];
	if (!bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, other, sizeof(other)))
		__sync_fetch_and_add(&adopted, 1);
	return PASS;
}

/*
 * The kernel sets a connection's ssthresh to its clamp, so that a clamp which is raised at once would double the window in every
 * round trip: it rises by an eighth.
 */
SEC("sockops")
int clamp(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	__u32 *is, wanted = FREE;
	struct bound *bound;
	__u64 cookie;
	int value;

	if (is_ours(ctx)) {
		bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_RTT_CB_FLAG);
		__sync_fetch_and_add(&adopted, 1);
	}
	if (ctx->op != BPF_SOCK_OPS_RTT_CB || !sk)
		return PASS;
	cookie = bpf_get_socket_cookie(ctx);
	bound = bpf_map_lookup_elem(&bounds, &cookie);
	if (bound && bpf_ktime_get_ns() / 1000 < until)
		wanted = bound->upper;
	is = bpf_sk_storage_get(&clamps, sk, NULL, wanted < FREE ? BPF_SK_STORAGE_GET_F_CREATE : 0);
	if (!is || *is == wanted)
		return PASS;
	/* Nothing yet is as good as free. */
	if (*is && *is + *is / 8 + 1 < wanted)
		wanted = *is + *is / 8 + 1;
	value = wanted;
	if (!bpf_setsockopt(ctx, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &value, sizeof(value)))
		*is = wanted;
	return PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
