// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A PBE receiver on kernel TCP: segments of a cgroup's connections tell their senders what the agent knows of the cell.
 *
 * `tell`, attached to a cgroup, agrees with peers on the option, and writes what the agent has put into `flows` into segments that leave.
 * `arrive` lets the agent know of packets that come. What is told holds until the time that the agent sets ever anew: then the option
 * says that nothing is known, and once the agent has gone there is none.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "pbe_option.h"
#include "pbe_receiver.h"

#define TCP_CLOSE 7
#define IPV4_LEAST 20
#define IPV4_PROTOCOL 9
#define IPV6_LEN 40
#define IPV6_NEXT_HEADER 6
#define TCP_LEAST 20
#define TCP_DATA_OFFSET 12
#define TIMESTAMP_KIND 8
#define TIMESTAMP_LEN 10
/* Options that are looked through for the timestamp. */
#define MOST_OPTIONS 12

/* Of the kernel's structs, what is used. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct rtt_estimate {
	__u32 rtt_us;
};

struct tcp_sock {
	__u32 srtt_us;
	struct rtt_estimate rcv_rtt_est;
};
#pragma clang attribute pop

/* The agent's network namespace. */
const volatile __u64 netns = 0;

/* Until when what is told holds (ns, CLOCK_MONOTONIC). */
__u64 until = 0;
/* Connections with a peer that wants to be told; segments with the option; news that found no place. */
__u64 agreed = 0;
__u64 written = 0;
__u64 lost = 0;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_FLOWS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct told);
} flows SEC(".maps");

/* The number of the last segment that told something. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} numbers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 19);
} news SEC(".maps");

static __always_inline void tell_agent(const struct news *what)
{
	if (bpf_ringbuf_output(&news, (void *)what, sizeof(*what), 0))
		__sync_fetch_and_add(&lost, 1);
}

/* The handshake is over: a peer that sent the option in its SYN wants to be told, or will tell itself. */
static __always_inline void agree(struct bpf_sock_ops *ctx, __u64 where)
{
	struct news begun = { .kind = BEGUN, .at = bpf_ktime_get_ns(), .cookie = bpf_get_socket_cookie(ctx) };
	struct bpf_sock *sk = ctx->sk;
	struct capacity_option option;
	struct told nothing = {};

	if (!sk || !find_option(ctx, &option, where)) {
		leave_alone(ctx);
		return;
	}
	if (bpf_map_update_elem(&flows, &begun.cookie, &nothing, BPF_ANY) ||
	    !bpf_sk_storage_get(&numbers, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE)) {
		bpf_map_delete_elem(&flows, &begun.cookie);
		leave_alone(ctx);
		return;
	}
	set_flags(ctx, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_STATE_CB_FLAG);
	__sync_fetch_and_add(&agreed, 1);
	begun.round_trip = ctx->srtt_us >> 3;
	tell_agent(&begun);
}

static __always_inline void write_option(struct bpf_sock_ops *ctx)
{
	struct capacity_option option = unknown_capacity();
	__u64 cookie = bpf_get_socket_cookie(ctx);
	struct bpf_sock *sk = ctx->sk;
	struct told *told;
	__u32 *number;

	if (ctx->skb_tcp_flags & TCPHDR_SYN) {
		if (!offers(ctx, netns))
			return;
	} else {
		number = sk ? bpf_sk_storage_get(&numbers, sk, NULL, 0) : NULL;
		if (!number)
			return;
		told = bpf_map_lookup_elem(&flows, &cookie);
		if (told && bpf_ktime_get_ns() < until)
			__builtin_memcpy(option.value, told->value, sizeof(option.value));
		*number = (*number + 1) & 0xf;
		option.value[3] |= *number;
	}
	if (!bpf_store_hdr_opt(ctx, &option, sizeof(option), 0))
		__sync_fetch_and_add(&written, 1);
}

/* Room for the option, also where only the size of segments to come is asked for. */
static __always_inline void reserve(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;

	if (ctx->skb_tcp_flags & TCPHDR_SYN) {
		if (!offers(ctx, netns))
			return;
	} else if (!sk || !bpf_sk_storage_get(&numbers, sk, NULL, 0)) {
		return;
	}
	/* Where there is none, it is not written. */
	bpf_reserve_hdr_opt(ctx, OPTION_LEN, 0);
}

SEC("sockops")
int tell(struct bpf_sock_ops *ctx)
{
	struct news over = { .kind = OVER };

	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		if (bpf_get_netns_cookie(ctx) == netns)
			watch_listener(ctx);
		break;
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		if (bpf_get_netns_cookie(ctx) == netns)
			set_flags(ctx, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		reserve(ctx);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		write_option(ctx);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		if (bpf_get_netns_cookie(ctx) == netns)
			agree(ctx, 0);
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		if (bpf_get_netns_cookie(ctx) == netns)
			agree(ctx, BPF_LOAD_HDR_OPT_TCP_SYN);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		over.cookie = bpf_get_socket_cookie(ctx);
		if (ctx->args[1] == TCP_CLOSE && !bpf_map_delete_elem(&flows, &over.cookie))
			tell_agent(&over);
		break;
	}
	return PASS;
}

/* The timestamp in the options of a TCP header at `at`, which end at `end`. */
static __always_inline void read_stamp(struct __sk_buff *skb, __u32 at, __u32 end, struct news *arrived)
{
	__u8 head[2];
	__be32 stamp;
	int i;

	for (i = 0; i < MOST_OPTIONS; i++) {
		if (at + TIMESTAMP_LEN > end || bpf_skb_load_bytes(skb, at, head, sizeof(head)))
			return;
		if (!head[0])
			return;
		if (head[0] == TIMESTAMP_KIND && head[1] == TIMESTAMP_LEN) {
			if (bpf_skb_load_bytes(skb, at + 2, &stamp, sizeof(stamp)))
				return;
			arrived->stamp = bpf_ntohl(stamp);
			arrived->stamped = 1;
			return;
		}
		/* No operation. */
		at += head[0] == 1 ? 1 : head[1] < 2 ? 2 : head[1];
	}
}

SEC("cgroup_skb/ingress")
int arrive(struct __sk_buff *skb)
{
	struct news arrived = { .kind = ARRIVED, .cookie = bpf_get_socket_cookie(skb) };
	struct bpf_sock *sk = skb->sk;
	struct tcp_sock *tp;
	__u32 ip, headers;
	__u8 octet;

	if (!sk || !bpf_map_lookup_elem(&flows, &arrived.cookie))
		return PASS;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, 0, &octet, 1))
			return PASS;
		ip = (octet & 0xf) * 4;
		if (bpf_skb_load_bytes(skb, IPV4_PROTOCOL, &octet, 1) || octet != IPPROTO_TCP || ip < IPV4_LEAST)
			return PASS;
	} else {
		ip = IPV6_LEN;
		if (bpf_skb_load_bytes(skb, IPV6_NEXT_HEADER, &octet, 1) || octet != IPPROTO_TCP)
			return PASS;
	}
	if (bpf_skb_load_bytes(skb, ip + TCP_DATA_OFFSET, &octet, 1))
		return PASS;
	headers = ip + (octet >> 4) * 4;
	/* Without payload it says nothing of the cell. */
	if (skb->len <= headers)
		return PASS;
	arrived.at = bpf_ktime_get_ns();
	arrived.packets = skb->gso_segs ? skb->gso_segs : 1;
	arrived.len = headers + (skb->len - headers) / arrived.packets;
	read_stamp(skb, ip + TCP_LEAST, headers, &arrived);
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp)
		arrived.round_trip = tp->rcv_rtt_est.rtt_us >> 3;
	tell_agent(&arrived);
	return PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
