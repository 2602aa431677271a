// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A PBE sender on kernel TCP: a connection goes at the capacity that its receiver measures in its cell, and is the kernel's BBR
 * where the receiver does not tell.
 *
 * `pbe` is the congestion control. `hear`, attached to a cgroup, agrees with peers of its connections on the option, and puts what the
 * option tells into the connection's storage, where the next ACK finds it. BBR is shown everything, as if it decided, and its window and
 * rate are kept: where nothing is told, or nobody reads options any more because the agent has gone, it goes on from there.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* Three bursts of two segments, as BBR has them beyond two BDP. */
#define ALLOWANCE 6

#include "bbr.h"
#include "pbe_option.h"
#include "pbe_law.h"

/* An option with a number behind by no more than this was overtaken. */
#define OVERTAKEN 4
#define TCP_CONGESTION 13

/* The agent's network namespace. */
const volatile __u64 netns = 0;
/* What the congestion control is called. */
const volatile char name[NAME_LEN] = "lasthop_pbe";
/* The law's parameters. */
const volatile __u64 words[PARAMS] = {};

/* Connections with a peer that tells; options that were read; those that a later one had overtaken. */
__u64 promised = 0;
__u64 options = 0;
__u64 overtaken = 0;

struct flow {
	struct pbe pbe;
	/* The peer's SYN had the option. */
	__u8 agreed;
	/* What the last option said, if nobody has looked at it yet. */
	__u8 value[4];
	__u8 news;
	/* The number of the last option, if there was one. */
	__u8 numbered;
	__u8 number;
	/* Window and rate are the law's, not BBR's. */
	__u8 taken;
	/* What BBR has decided, and what was set in its place. */
	__u32 bbr_cwnd;
	__u32 own_cwnd;
	__u64 bbr_rate;
	__u64 own_rate;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} flows SEC(".maps");

static __always_inline struct bbr *bbr_of(struct sock *sk)
{
	return (struct bbr *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline __u64 octets_of(struct sock *sk, __u64 per_us)
{
	return per_us * ((struct tcp_sock *)sk)->mss_cache * SECOND >> BW_SCALE;
}

/* What BBR knows of the path. */
static __always_inline void look(struct sock *sk, struct path *path)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 rtt = bbr_of(sk)->min_rtt_us;

	path->now = tp->tcp_mstamp;
	path->rtt = rtt && rtt != ~0U ? rtt : SOME_RTT;
	path->mss = tp->mss_cache ? tp->mss_cache : 1;
	path->delivered = octets_of(sk, bbr_of(sk)->bw.s[0].v);
	path->round = bbr_of(sk)->rtt_cnt;
	path->sent = tp->bytes_sent;
	path->in_flight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

/* BBR finds what it left, unless the kernel has changed it since. */
static __always_inline void give_back(struct sock *sk, struct flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (!flow->taken)
		return;
	if (tp->snd_cwnd == flow->own_cwnd)
		tp->snd_cwnd = flow->bbr_cwnd;
	if (sk->sk_pacing_rate == flow->own_rate)
		sk->sk_pacing_rate = flow->bbr_rate;
	flow->taken = 0;
}

/* What the law has decided holds in its place. */
static __always_inline void take_over(struct sock *sk, struct flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (flow->pbe.state == PLAIN)
		return;
	flow->bbr_cwnd = tp->snd_cwnd;
	flow->bbr_rate = sk->sk_pacing_rate;
	flow->own_cwnd = least(flow->pbe.cwnd, tp->snd_cwnd_clamp);
	flow->own_rate = least(flow->pbe.rate, sk->sk_max_pacing_rate);
	tp->snd_cwnd = flow->own_cwnd;
	sk->sk_pacing_rate = flow->own_rate;
	flow->taken = 1;
}

static __always_inline void decide(struct sock *sk, struct flow *flow, struct path *path)
{
	struct pbe_params params = chosen(words);

	pbe_refresh(&flow->pbe, path, &params);
	take_over(sk, flow);
}

/* What has been told since the last ACK. */
static __always_inline void take_news(struct flow *flow, const struct path *path)
{
	__u32 available, fair;

	if (!flow->news)
		return;
	flow->news = 0;
	available = flow->value[0] << 4 | flow->value[1] >> 4;
	fair = flow->value[2] << 4 | flow->value[3] >> 4;
	pbe_on_cell(&flow->pbe, path, octets_a_second(available), octets_a_second(fair), flow->value[1] & 0xf);
}

SEC("struct_ops")
void BPF_PROG(pbe_init, struct sock *sk)
{
	struct path path = {};
	struct pbe fresh = {};
	struct flow *flow;
	__u32 initial;

	bbr_init(sk);
	flow = bpf_sk_storage_get(&flows, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow)
		return;
	initial = ((struct tcp_sock *)sk)->snd_cwnd;
	fresh.initial = least(most_of(initial, 1), 255);
	flow->pbe = fresh;
	flow->taken = 0;
	look(sk, &path);
	take_news(flow, &path);
	decide(sk, flow, &path);
}

SEC("struct_ops")
void BPF_PROG(pbe_main, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *flow = bpf_sk_storage_get(&flows, sk, NULL, 0);
	__u32 round = bbr_of(sk)->rtt_cnt, stamp = bbr_of(sk)->min_rtt_stamp, limited = tp->app_limited;
	struct pbe_params params = chosen(words);
	struct path path = {};

	if (!flow) {
		bbr_main(sk, ack, flag, rs);
		return;
	}
	give_back(sk, flow);
	bbr_main(sk, ack, flag, rs);
	look(sk, &path);
	path.round_began = path.round != round;
	path.rtt_renewed = bbr_of(sk)->min_rtt_stamp != stamp;
	path.newly_delivered = rs->acked_sacked;
	path.app_limited = rs->is_app_limited;
	if (rs->delivered > 0 && rs->interval_us > 0)
		path.newest = (__u64)rs->delivered * path.mss * SECOND / (__u64)rs->interval_us;
	path.in_recovery = ((struct inet_connection_sock *)sk)->icsk_ca_state != CA_OPEN;
	take_news(flow, &path);
	pbe_on_ack(&flow->pbe, &path, &params);
	decide(sk, flow, &path);
	/* While it does not decide, BBR does not empty the path, and what it measures counts. */
	if (flow->taken)
		tp->app_limited = limited;
}

SEC("struct_ops")
__u32 BPF_PROG(pbe_ssthresh, struct sock *sk)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, NULL, 0);
	__u32 ssthresh;

	if (!flow || !flow->taken)
		return bbr_ssthresh(sk);
	give_back(sk, flow);
	ssthresh = bbr_ssthresh(sk);
	take_over(sk, flow);
	return ssthresh;
}

SEC("struct_ops")
void BPF_PROG(pbe_set_state, struct sock *sk, __u8 new_state)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, NULL, 0);

	bbr_set_state(sk, new_state);
	if (flow && flow->taken && new_state == CA_LOSS)
		pbe_on_timeout(&flow->pbe, ((struct tcp_sock *)sk)->snd_cwnd);
}

SEC("struct_ops")
void BPF_PROG(pbe_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct pbe_params params = chosen(words);
	struct flow *flow = bpf_sk_storage_get(&flows, sk, NULL, 0);
	struct path path = {};

	if (!flow) {
		bbr_cwnd_event(sk, event);
		return;
	}
	give_back(sk, flow);
	bbr_cwnd_event(sk, event);
	look(sk, &path);
	if (event == CA_EVENT_TX_START)
		pbe_on_idle(&flow->pbe, &path, &params);
	decide(sk, flow, &path);
}

SEC("struct_ops")
__u32 BPF_PROG(pbe_undo_cwnd, struct sock *sk)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, NULL, 0);

	if (flow)
		flow->pbe.repairing = 0;
	return bbr_undo_cwnd(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(pbe_min_tso_segs, struct sock *sk)
{
	return bbr_min_tso_segs(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(pbe_sndbuf_expand, struct sock *sk)
{
	return bbr_sndbuf_expand(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops pbe = {
	.init = (void *)pbe_init,
	.ssthresh = (void *)pbe_ssthresh,
	.set_state = (void *)pbe_set_state,
	.cwnd_event = (void *)pbe_cwnd_event,
	.undo_cwnd = (void *)pbe_undo_cwnd,
	.min_tso_segs = (void *)pbe_min_tso_segs,
	.cong_control = (void *)pbe_main,
	.sndbuf_expand = (void *)pbe_sndbuf_expand,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "lasthop_pbe",
};

/* Keeps what a segment tells for the next ACK. */
static __always_inline void read_option(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct capacity_option option;
	struct flow *flow;
	__u8 number;

	if (!sk || !find_option(ctx, &option, 0))
		return;
	flow = bpf_sk_storage_get(&flows, sk, NULL, 0);
	if (!flow || !flow->agreed)
		return;
	number = option.value[3] & 0xf;
	if (flow->numbered && ((flow->number - number) & 0xf) <= OVERTAKEN) {
		__sync_fetch_and_add(&overtaken, 1);
		return;
	}
	__sync_fetch_and_add(&options, 1);
	flow->numbered = 1;
	flow->number = number;
	__builtin_memcpy(flow->value, option.value, sizeof(flow->value));
	flow->news = 1;
}

/* The handshake is over: a peer that sent the option in its SYN will tell. */
static __always_inline void agree(struct bpf_sock_ops *ctx, __u64 where)
{
	struct bpf_sock *sk = ctx->sk;
	struct capacity_option option;
	struct flow *flow;

	if (!sk || !find_option(ctx, &option, where)) {
		leave_alone(ctx);
		return;
	}
	flow = bpf_sk_storage_get(&flows, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow)
		return;
	set_flags(ctx, BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG);
	flow->agreed = 1;
	flow->news = 1;
	__sync_fetch_and_add(&promised, 1);
}

/* True for a connection that is about to begin over this congestion control. */
static __always_inline int has_pbe(struct bpf_sock_ops *ctx)
{
	char has[NAME_LEN] = {};
	int i;

	if (bpf_getsockopt(ctx, SOL_TCP, TCP_CONGESTION, has, sizeof(has)))
		return 0;
	for (i = 0; i < NAME_LEN; i++) {
		if (has[i] != name[i])
			return 0;
		if (!has[i])
			break;
	}
	return 1;
}

SEC("sockops")
int hear(struct bpf_sock_ops *ctx)
{
	struct capacity_option option = unknown_capacity();

	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		if (bpf_get_netns_cookie(ctx) == netns)
			watch_listener(ctx);
		break;
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		if (bpf_get_netns_cookie(ctx) == netns && has_pbe(ctx))
			set_flags(ctx, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		if (offers(ctx, netns))
			bpf_reserve_hdr_opt(ctx, OPTION_LEN, 0);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		if (offers(ctx, netns))
			bpf_store_hdr_opt(ctx, &option, sizeof(option), 0);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		if (bpf_get_netns_cookie(ctx) == netns)
			agree(ctx, 0);
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		if (bpf_get_netns_cookie(ctx) == netns)
			agree(ctx, BPF_LOAD_HDR_OPT_TCP_SYN);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		read_option(ctx);
		break;
	}
	return PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
