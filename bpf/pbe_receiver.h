/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the receiver's programs and the agent share: crates/agents/src/pbe/abi.rs has the same. */
#ifndef LASTHOP_PBE_RECEIVER_H
#define LASTHOP_PBE_RECEIVER_H

#include <linux/types.h>
#include <stddef.h>

/* Connections that are told for at once. */
#define MOST_FLOWS 1024

/* A connection with a peer that wants to be told; one that is over; packets of one that have come. */
enum news_kind { BEGUN, OVER, ARRIVED };

struct news {
	__u64 cookie;
	/* CLOCK_MONOTONIC, ns. */
	__u64 at;
	__u32 kind;
	/* How many packets came as one, and the length of each, headers included. */
	__u32 packets;
	__u32 len;
	/* TSval, if the packet had one. */
	__u32 stamp;
	__u32 stamped;
	/* The round trip as this end has measured it, µs; 0: it has not. */
	__u32 round_trip;
};

_Static_assert(sizeof(struct news) == 40 && offsetof(struct news, kind) == 16 && offsetof(struct news, round_trip) == 36,
	       "crates/agents/src/pbe/abi.rs reads it");

/* What a connection's segments tell: the option's value, with a number of zero. */
struct told {
	__u8 value[4];
};

#endif
