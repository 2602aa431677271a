/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the receive-window rewriter's eBPF program and user space share: the table of flows, what user space controls and
 * what the program counts. Rust mirrors these structs with #[repr(C)] (`lasthop_laws::oal::rwnd::Flow`,
 * `lasthop_agents::ap::abi`); both sides assert every size and offset, so that drift fails the build.
 */
#ifndef LASTHOP_RWND_H
#define LASTHOP_RWND_H

#include <linux/types.h>

/* The law's constants. */
#include "rwnd_shared.h"

/* Of a ring of RWND_BINS minima, each 2^31 ns long. */
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

/*
 * One flow. What the fields mean, and why they stand in this order, is said at the Rust struct. Zero is "none".
 * Behind its key (40 octets) the flow fills three cache lines and a part of the key's.
 */
struct rwnd_flow {
	/* In the key's line: read for every segment, written seldom. */
	__u64 ack_at;
	__u32 target;
	__u16 down_seen; /* this and the next are read as one word */
	__u16 up_seen;
	__u32 ack_val;
	__u32 rewritten;

	/* The second line: written for every segment. */
	__u64 acked;
	__u64 forwarded;
	__u64 last_data;
	__u64 sent_at;
	__u32 edge;
	__u32 highest_ack;
	__u32 max_end;
	__u32 sent_end;
	__u32 window;
	__u32 limit;
	__u32 last_val;
	__u16 last_window;
	__u8 shift;
	__u8 pad;

	/* The others: seldom needed. */
	__u64 born;
	__u32 down_isn;
	__u32 up_isn;
	__u16 down_mss;
	__u16 up_mss;
	__u16 syn_window;
	__u8 down_scale;
	__u8 up_scale;
	struct rwnd_half wireless;
	struct rwnd_half wired;
	__u64 asked_at;
	__u32 handshake;
	__u8 hardware[6];
	__u8 spare[6];
};

/* Addresses and ports as on the wire. IPv4: the station's address, then the other end's, then zeros. */
struct rwnd_key {
	__be32 ends[8]; /* IPv6: four words of the station, four of the other end */
	__be16 station_port;
	__be16 remote_port;
	__u8 version; /* 4 or 6 */
	__u8 pad;
	__u16 sum; /* of the pseudo-header without its length, folded, never complemented; follows from the rest */
};

struct rwnd_entry {
	struct rwnd_key key;
	struct rwnd_flow flow;
};

/*
 * A set has as many ways (RWND_WAYS) as leave its size a power of two, so that no set straddles a page.
 * A flow stands in any way of the one set that its key hashes to. The tag says whether a way is taken, and most likely
 * by which flow; the key says so for certain. Ways are taken and cleared by the holder of the lock (1), which nobody
 * waits for.
 */
struct rwnd_set {
	__u32 tags[RWND_WAYS]; /* 0 = free; others are odd */
	__u32 lock;
	__u32 used[RWND_WAYS]; /* tick of the newest packet; also of free ways */
	__u32 pad;
	struct rwnd_entry ways[RWND_WAYS];
	__u8 spare[192];
};

/* Written by user space, read by the program: one cache line. */
struct rwnd_control {
	__u64 now_ns;	   /* CLOCK_MONOTONIC, to the interval of heartbeats */
	__u64 deadline;	   /* the last tick at which the newest heartbeat counts: later everything passes untouched */
	__u64 age_limit;   /* ticks from a heartbeat to its deadline */
	__u64 tick_mask;   /* all ones; 0 under test */
	__u64 test_tick;   /* 0; under test the tick, in nanoseconds */
	__u64 test_now_ns; /* under test the time */
	__u64 seed;	   /* of the hash */
	__u32 set_mask;	   /* sets, less one */
	__u32 events;	   /* 1: events are told; 0: nobody reads them */
};

/* Rarely counted by the program, one set a processor. */
struct rwnd_counters {
	__u64 rewritten;  /* windows lowered in flows that have left the table */
	__u64 unattended; /* uplink segments that passed untouched because the heartbeat was too old */
	__u64 malformed;  /* TCP segments that could not be parsed */
	__u64 opened;	  /* flows entered into the table */
	__u64 evicted;	  /* of these, those that took the place of a flow that was not over */
	__u64 refused;	  /* flows for which there was no place */
	__u64 apart;	  /* segments of flows in the table that went the long way */
	__u64 missed;	  /* events for which the ring had no room */
};

/* SACK blocks that fit into a header. */
#define RWND_SACKS 4

/*
 * A segment of which its flow's numbers would not tell, with those numbers as they stood before it. What is told is data out
 * of order, below or beyond what has passed; one octet, which may be a probe; a segment without data that is ahead; and
 * acknowledgements with SACK blocks.
 */
struct rwnd_event {
	struct rwnd_key key;
	__u64 born; /* tells apart connections of one key */
	__u64 at;   /* CLOCK_MONOTONIC */
	__u32 max_end;
	__u32 highest_ack;
	__u32 seq;
	__u32 len; /* payload */
	__u32 ack;
	__u16 count; /* segments that the kernel has merged into it; 0 counts as 1 */
	__u8 uplink;
	__u8 sacks; /* blocks */
	__be32 sack[2 * RWND_SACKS]; /* left and right edges, as on the wire */
};

/* Argument of rwnd_heartbeat. */
struct rwnd_beat {
	__u64 now_ns; /* CLOCK_MONOTONIC */
};

/* A tick old is rested: no processor works on a packet for so long. One more, since ticks are not seen at once. */
#define RWND_REST 2
/* Another processor may know a newer tick, by less than this. */
#define RWND_AHEAD 16

#ifdef __BPF__
#define RWND_AT(type, field, offset) \
	_Static_assert(__builtin_offsetof(struct type, field) == (offset), #type "." #field)

_Static_assert(sizeof(struct rwnd_half) == 40, "rwnd_half");
_Static_assert(sizeof(struct rwnd_flow) == 216, "rwnd_flow");
_Static_assert(sizeof(struct rwnd_key) == 40, "rwnd_key");
_Static_assert(sizeof(struct rwnd_entry) == 256, "rwnd_entry");
_Static_assert(sizeof(struct rwnd_set) == 2048, "rwnd_set");
_Static_assert(sizeof(struct rwnd_control) == 64, "rwnd_control");
_Static_assert(sizeof(struct rwnd_counters) == 64, "rwnd_counters");
_Static_assert(sizeof(struct rwnd_event) == 112, "rwnd_event");
RWND_AT(rwnd_flow, target, 8);
RWND_AT(rwnd_flow, down_seen, 12);
RWND_AT(rwnd_flow, up_seen, 14);
RWND_AT(rwnd_flow, ack_val, 16);
RWND_AT(rwnd_flow, rewritten, 20);
RWND_AT(rwnd_flow, acked, 24);
RWND_AT(rwnd_flow, forwarded, 32);
RWND_AT(rwnd_flow, last_data, 40);
RWND_AT(rwnd_flow, sent_at, 48);
RWND_AT(rwnd_flow, edge, 56);
RWND_AT(rwnd_flow, highest_ack, 60);
RWND_AT(rwnd_flow, max_end, 64);
RWND_AT(rwnd_flow, sent_end, 68);
RWND_AT(rwnd_flow, window, 72);
RWND_AT(rwnd_flow, limit, 76);
RWND_AT(rwnd_flow, last_val, 80);
RWND_AT(rwnd_flow, last_window, 84);
RWND_AT(rwnd_flow, shift, 86);
RWND_AT(rwnd_flow, born, 88);
RWND_AT(rwnd_flow, down_isn, 96);
RWND_AT(rwnd_flow, up_isn, 100);
RWND_AT(rwnd_flow, down_mss, 104);
RWND_AT(rwnd_flow, up_mss, 106);
RWND_AT(rwnd_flow, syn_window, 108);
RWND_AT(rwnd_flow, down_scale, 110);
RWND_AT(rwnd_flow, up_scale, 111);
RWND_AT(rwnd_flow, wireless, 112);
RWND_AT(rwnd_flow, wired, 152);
RWND_AT(rwnd_key, station_port, 32);
RWND_AT(rwnd_key, remote_port, 34);
RWND_AT(rwnd_key, version, 36);
RWND_AT(rwnd_key, sum, 38);
RWND_AT(rwnd_entry, flow, 40);
RWND_AT(rwnd_set, lock, 28);
RWND_AT(rwnd_set, used, 32);
RWND_AT(rwnd_set, ways, 64);
RWND_AT(rwnd_control, deadline, 8);
RWND_AT(rwnd_control, age_limit, 16);
RWND_AT(rwnd_control, tick_mask, 24);
RWND_AT(rwnd_control, test_tick, 32);
RWND_AT(rwnd_control, test_now_ns, 40);
RWND_AT(rwnd_control, seed, 48);
RWND_AT(rwnd_control, set_mask, 56);
RWND_AT(rwnd_control, events, 60);
RWND_AT(rwnd_counters, apart, 48);
RWND_AT(rwnd_counters, missed, 56);
RWND_AT(rwnd_event, born, 40);
RWND_AT(rwnd_event, at, 48);
RWND_AT(rwnd_event, max_end, 56);
RWND_AT(rwnd_event, highest_ack, 60);
RWND_AT(rwnd_event, seq, 64);
RWND_AT(rwnd_event, len, 68);
RWND_AT(rwnd_event, ack, 72);
RWND_AT(rwnd_event, count, 76);
RWND_AT(rwnd_event, uplink, 78);
RWND_AT(rwnd_event, sacks, 79);
RWND_AT(rwnd_event, sack, 80);
#endif

#endif
