// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Watches congestion windows of chosen connections at every acknowledgement and every loss: for tests alone.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "../../../../bpf/cubic.h"

#define OPEN 0
#define RECOVERY 3
#define BURST 10

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
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u32 snd_una;
	__u32 mss_cache;
};
#pragma clang attribute pop

struct watched {
	/* What is watched for. */
	__u32 lower;
	__u32 upper;
	/* Acknowledgements that came, and those in state Open of which the window was below, or above. */
	__u64 acks;
	__u64 open;
	__u64 below;
	__u64 above;
	/* Of those in state Open, slow start would have begun anew. */
	__u64 slow_start;
	/* Losses: their number, the sum of windows at them, the time of the first and the last (ns). */
	__u64 losses;
	__u64 cwnd_at_loss;
	__u64 first_loss;
	__u64 last_loss;
	__u32 state;
	/* At the last acknowledgement in state Open, beyond slow start: the window, and what was acknowledged; no window: none has come. */
	__u32 cwnd;
	__u32 una;
	/* The most segments that one acknowledgement of fewer than BURST has set free while it raised the window: those that it acknowledged,
	 * and those that the window grew by. */
	__u32 freed;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct watched);
} watched SEC(".maps");

static __always_inline struct watched *of(struct sock *sk)
{
	__u64 cookie = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);

	return bpf_map_lookup_elem(&watched, &cookie);
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(watch_ack, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct watched *seen = of(sk);
	__u32 cwnd, una, acked, mss, before;

	if (!seen)
		return 0;
	seen->acks++;
	before = seen->cwnd;
	seen->cwnd = 0;
	if (BPF_CORE_READ_BITFIELD_PROBED(&tp->inet_conn, icsk_ca_state) != OPEN)
		return 0;
	cwnd = BPF_CORE_READ(tp, snd_cwnd);
	una = BPF_CORE_READ(tp, snd_una);
	mss = BPF_CORE_READ(tp, mss_cache);
	/* The trace point comes before an acknowledgement is taken in: what has changed since the last was that one's doing. */
	acked = mss ? (una - seen->una) / mss : BURST;
	if (before && cwnd > before && acked < BURST && acked + cwnd - before > seen->freed)
		seen->freed = acked + cwnd - before;
	if (cwnd >= BPF_CORE_READ(tp, snd_ssthresh))
		seen->cwnd = cwnd;
	seen->una = una;
	seen->open++;
	seen->below += cwnd < seen->lower;
	seen->above += cwnd > seen->upper;
	seen->slow_start += BPF_CORE_READ(tp, snd_ssthresh) > seen->upper;
	return 0;
}

SEC("tp_btf/tcp_cong_state_set")
int BPF_PROG(watch_state, struct sock *sk, const __u8 state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct watched *seen = of(sk);

	if (!seen)
		return 0;
	if (state >= RECOVERY && seen->state < RECOVERY) {
		seen->losses++;
		seen->cwnd_at_loss += BPF_CORE_READ(tp, snd_cwnd);
		seen->last_loss = bpf_ktime_get_ns();
		if (!seen->first_loss)
			seen->first_loss = seen->last_loss;
	}
	seen->state = state;
	return 0;
}

/* The kernel's CUBIC called by programs that do nothing else: what such programs cost by themselves. */
SEC("struct_ops")
void BPF_PROG(bare_init, struct sock *sk)
{
	cubictcp_init(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(bare_ssthresh, struct sock *sk)
{
	return cubictcp_recalc_ssthresh(sk);
}

SEC("struct_ops")
void BPF_PROG(bare_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	cubictcp_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
void BPF_PROG(bare_set_state, struct sock *sk, __u8 new_state)
{
	cubictcp_state(sk, new_state);
}

SEC("struct_ops")
void BPF_PROG(bare_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	cubictcp_cwnd_event(sk, event);
}

SEC("struct_ops")
void BPF_PROG(bare_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	cubictcp_acked(sk, sample);
}

SEC("struct_ops")
__u32 BPF_PROG(bare_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops bare = {
	.init = (void *)bare_init,
	.ssthresh = (void *)bare_ssthresh,
	.cong_avoid = (void *)bare_cong_avoid,
	.set_state = (void *)bare_set_state,
	.cwnd_event = (void *)bare_cwnd_event,
	.pkts_acked = (void *)bare_pkts_acked,
	.undo_cwnd = (void *)bare_undo_cwnd,
	.name = "lhbare",
};

char LICENSE[] SEC("license") = "Dual BSD/GPL";
