/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the receive-window rewriter's eBPF program and user space share: the state of a flow, its key, what user space
 * controls and what the program counts. Rust mirrors these structs with #[repr(C)] (`lasthop_laws::oal::rwnd::Flow`,
 * `lasthop_agents::ap`); both sides assert every size and offset, so that drift fails the build.
 */
#ifndef LASTHOP_RWND_H
#define LASTHOP_RWND_H

#include <linux/types.h>

/* Bins of a ring of minima, each 2^31 ns long. */
#define RWND_BINS 5

struct rwnd_bin {
	__u32 epoch; /* now >> 31, plus one; 0 = empty */
	__u32 min_ns;
};

struct rwnd_half {
	struct rwnd_bin bins[RWND_BINS];
};

/* Bits of down_seen and up_seen. */
#define RWND_SYN (1u << 0)
#define RWND_SCALE (1u << 1)
#define RWND_TIMESTAMPS (1u << 2)
#define RWND_HANDS_OFF (1u << 3)
#define RWND_FIN (1u << 4)
#define RWND_RST (1u << 5)
#define RWND_STARTED (1u << 6)
#define RWND_RECOVERING (1u << 7)
#define RWND_VAL (1u << 8)

/* One flow. What the fields mean, and why they stand in this order, is said at the Rust struct. Zero is "none". */
struct rwnd_flow {
	/* Written seldom, read for every segment. */
	__u64 born;
	__u64 ack_at;
	__u32 target;
	__u32 down_seen;
	__u32 up_seen;
	__u32 ack_val;
	__u16 down_mss;
	__u16 up_mss;
	__u16 syn_window;
	__u8 down_scale;
	__u8 up_scale;

	/* Written for every segment in the uplink direction. */
	__u64 acked;
	__u32 edge;
	__u32 highest_ack;
	__u32 window;
	__u32 limit;
	__u32 last_val;
	__u16 last_window;
	__u16 pad;

	/* Written for every segment in the downlink direction. */
	__u64 sent_at;
	__u32 max_end;
	__u32 sent_end;
	__u64 forwarded;
	__u64 last_data;

	/* Seldom needed. */
	__u32 down_isn;
	__u32 up_isn;
	struct rwnd_half wireless;
	struct rwnd_half wired;
	__u32 spare[10];
};

/* Addresses and ports as on the wire; an IPv4 address fills the first 4 octets, the rest is 0. */
struct rwnd_key {
	__u8 station[16];
	__u8 remote[16];
	__be16 station_port;
	__be16 remote_port;
	__u8 version; /* 4 or 6 */
	__u8 pad[3];
};

/* Written by user space, read by the program. */
struct rwnd_control {
	__u64 heartbeat_ns; /* when user space last showed that it lives, CLOCK_MONOTONIC */
	__u64 age_limit_ns; /* an older heartbeat means that everything passes untouched */
	__u64 test_now_ns;  /* the time, if the program was loaded with a test clock */
};

/* Counted by the program, one set a processor. */
struct rwnd_counters {
	__u64 segments;	  /* TCP segments of flows in the map */
	__u64 rewritten;  /* windows lowered */
	__u64 unattended; /* uplink segments that passed untouched because the heartbeat was too old */
	__u64 malformed;  /* TCP segments that could not be parsed */
	__u64 opened;	  /* flows entered into the map */
};

/* Argument of rwnd_set_target. */
struct rwnd_order {
	struct rwnd_key key;
	__u64 born;   /* the connection meant: its key may have been taken by another */
	__u32 target; /* octets; 0 = none */
	__u32 pad;
};

#ifdef __BPF__
#define RWND_AT(type, field, offset) \
	_Static_assert(__builtin_offsetof(struct type, field) == (offset), #type "." #field)

_Static_assert(sizeof(struct rwnd_half) == 40, "rwnd_half");
_Static_assert(sizeof(struct rwnd_flow) == 232, "rwnd_flow");
_Static_assert(sizeof(struct rwnd_key) == 40, "rwnd_key");
_Static_assert(sizeof(struct rwnd_control) == 24, "rwnd_control");
_Static_assert(sizeof(struct rwnd_counters) == 40, "rwnd_counters");
_Static_assert(sizeof(struct rwnd_order) == 56, "rwnd_order");
RWND_AT(rwnd_flow, ack_at, 8);
RWND_AT(rwnd_flow, target, 16);
RWND_AT(rwnd_flow, down_seen, 20);
RWND_AT(rwnd_flow, up_seen, 24);
RWND_AT(rwnd_flow, ack_val, 28);
RWND_AT(rwnd_flow, down_mss, 32);
RWND_AT(rwnd_flow, up_mss, 34);
RWND_AT(rwnd_flow, syn_window, 36);
RWND_AT(rwnd_flow, down_scale, 38);
RWND_AT(rwnd_flow, up_scale, 39);
RWND_AT(rwnd_flow, acked, 40);
RWND_AT(rwnd_flow, edge, 48);
RWND_AT(rwnd_flow, highest_ack, 52);
RWND_AT(rwnd_flow, window, 56);
RWND_AT(rwnd_flow, limit, 60);
RWND_AT(rwnd_flow, last_val, 64);
RWND_AT(rwnd_flow, last_window, 68);
RWND_AT(rwnd_flow, sent_at, 72);
RWND_AT(rwnd_flow, max_end, 80);
RWND_AT(rwnd_flow, sent_end, 84);
RWND_AT(rwnd_flow, forwarded, 88);
RWND_AT(rwnd_flow, last_data, 96);
RWND_AT(rwnd_flow, down_isn, 104);
RWND_AT(rwnd_flow, up_isn, 108);
RWND_AT(rwnd_flow, wireless, 112);
RWND_AT(rwnd_flow, wired, 152);
RWND_AT(rwnd_key, remote, 16);
RWND_AT(rwnd_key, station_port, 32);
RWND_AT(rwnd_key, remote_port, 34);
RWND_AT(rwnd_key, version, 36);
RWND_AT(rwnd_control, age_limit_ns, 8);
RWND_AT(rwnd_control, test_now_ns, 16);
RWND_AT(rwnd_counters, rewritten, 8);
RWND_AT(rwnd_counters, unattended, 16);
RWND_AT(rwnd_counters, malformed, 24);
RWND_AT(rwnd_counters, opened, 32);
RWND_AT(rwnd_order, born, 40);
RWND_AT(rwnd_order, target, 48);
#endif

#endif
