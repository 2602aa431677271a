/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The TCP option in which a receiver tells of its cell, as crates/wire/src/tcp/capacity.rs describes it, and how both ends
 * agree to use it.
 *
 * An end that tells, or wants to be told, has the option in its SYN, with a capacity of zero. An end that received a
 * SYN with it answers with it. From then on an end that tells has it in each segment that has room for it. A peer
 * without it is left alone.
 */
#ifndef LASTHOP_PBE_OPTION_H
#define LASTHOP_PBE_OPTION_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define SOL_TCP 6
#define TCP_SAVE_SYN 27

#define TCPHDR_SYN 0x02
#define TCPHDR_ACK 0x10

/* Let the system call go on. */
#define PASS 1

#define OPTION_KIND 253
#define OPTION_LEN 8
/* RFC 6994: kind, length, and a number that tells experiments apart. */
#define OPTION_ID_0 0x50
#define OPTION_ID_1 0x42

/* Flags of the option. */
#define OPTION_ELSEWHERE 1
#define OPTION_RESTART 2
#define OPTION_COARSE 4

struct capacity_option {
	__u8 kind;
	__u8 len;
	__u8 id[2];
	/* C_t in 12 bits and four flags; C_f in 12 bits and four of the segment's number. */
	__u8 value[4];
};

_Static_assert(sizeof(struct capacity_option) == OPTION_LEN, "the option's length");

/* An option of unknown capacity. */
static __always_inline struct capacity_option unknown_capacity(void)
{
	struct capacity_option option = {
		.kind = OPTION_KIND,
		.len = OPTION_LEN,
		.id = { OPTION_ID_0, OPTION_ID_1 },
	};

	return option;
}

/* Finds the option in the segment that the call is about, or with BPF_LOAD_HDR_OPT_TCP_SYN in the SYN that it answers. */
static __always_inline int find_option(struct bpf_sock_ops *ctx, struct capacity_option *option, __u64 where)
{
	/* What is looked for: kind and number. */
	*option = unknown_capacity();
	option->len = 4;
	return bpf_load_hdr_opt(ctx, option, sizeof(*option), where) == OPTION_LEN && option->len == OPTION_LEN;
}

/* What a code of twelve bits stands for, in octets a second. */
static __always_inline __u64 octets_a_second(__u32 code)
{
	__u64 octave = code >> 8, rest = code & 0xff;

	return (octave ? (256 + rest) << (octave - 1) : rest) * 125;
}

static __always_inline void set_flags(struct bpf_sock_ops *ctx, __u32 flags)
{
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | flags);
}

/* The connection has nothing to do with the option: its segments are not asked about any more. */
static __always_inline void leave_alone(struct bpf_sock_ops *ctx)
{
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags & ~BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
}

/* A socket listens: SYNs that it gets are answered with the option if they have it. */
static __always_inline void watch_listener(struct bpf_sock_ops *ctx)
{
	int on = 1;

	set_flags(ctx, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
	bpf_setsockopt(ctx, SOL_TCP, TCP_SAVE_SYN, &on, sizeof(on));
}

/* True for the SYN of a connection of this network namespace, and for the answer to a SYN with the option. */
static __always_inline int offers(struct bpf_sock_ops *ctx, __u64 netns)
{
	struct capacity_option option;

	if (!(ctx->skb_tcp_flags & TCPHDR_SYN) || bpf_get_netns_cookie(ctx) != netns)
		return 0;
	return !(ctx->skb_tcp_flags & TCPHDR_ACK) || find_option(ctx, &option, BPF_LOAD_HDR_OPT_TCP_SYN);
}

#endif
