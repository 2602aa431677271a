// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What packets wait at an interface of this host, and what they take it: from the queueing discipline to the driver's completion.
 *
 * net_dev_queue is when a packet is handed to the queueing discipline, net_dev_start_xmit when the driver gets it. The driver is done with it
 * when it frees it (consume_skb, kfree_skb: on a TAP that is when its reader has it), or hands it on (netif_rx: veth, loopback). A packet is at the
 * head of the line from when it was queued, or from when the one before was done, if that is later.
 *
 * The averages are those of `lasthop_laws::atp::HopDelay`, kept here: two additions a packet, where a ring buffer would wake the agent as often as
 * packets leave. A packet that is to be segmented (GSO) counts as its segments: each takes an equal part, and waits for those before it. The kernel
 * segments some packets on their way out of the queue, and frees them then; the segments are others, and are of the oldest such packet that has
 * any left. What is dropped in the queue counts for nothing.
 *
 * Packets are known by their address. One of which nothing is heard any more goes when its place is needed (LRU), and the agent counts what
 * waits anew twice a second.
 *
 * The kernel leaves out a program that it would have to interrupt by itself: a timer that takes a packet from a shaper may come while the same
 * program looks at another packet. A packet with its end left out would seem to wait. So there are two of each program
 * that sees an end, of which one runs at least: what one has done, the other finds done.
 */
#include <linux/bpf.h>
#include <stddef.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* The law's constants: an interface that has sent nothing for IDLE has rested. */
#include "hop_delay_shared.h"

#define HOPS 16
#define PACKETS 16384
#define TRAINS 64
/* Segments of one packet that are averaged one by one: after so many the average is their own. */
#define AVERAGED 32
#define TRIES 1024
/* A packet that found credit lowers T by a 512th: some hundreds of them come before senders have heard that T has fallen. */
#define CREDIT_SHIFT 9
#define NS_PER_S 1000000000ull
/* Segments of a packet that was queued before: lost track of. */
#define FORGOTTEN (2 * NS_PER_S)

/* Of the kernel's structs, what is used. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct net {
	__u64 net_cookie;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
};

struct sk_buff {
	struct net_device *dev;
	unsigned char *head;
	unsigned int end;
};

struct skb_shared_info {
	unsigned short gso_segs;
};
#pragma clang attribute pop

enum skb_drop_reason {
	SKB_DROP_REASON_QDISC_DROP = 1,
};

/* The network namespace that the interfaces are in. */
const volatile __u64 netns = 0;

/* A packet that was segmented on its way out: when it was queued, and how many of its segments the driver has not had. */
struct train {
	__u64 queued;
	__u64 left;
};

/* An interface; times in ns of CLOCK_MONOTONIC. */
struct hop_delay {
	/* Zero: this place and all behind it are free. */
	__u32 ifindex;
	__u32 lock;
	__u64 queueing;
	__u64 service;
	/* When the driver was done with the last packet; zero before the first. */
	__u64 last;
	/* When a packet came that found none before it. */
	__u64 busy;
	/* Segments that wait or are being sent. */
	__s64 waiting;
	__u64 done;
	__u64 dropped;
	/* Completions that found the averages being written by another processor. */
	__u64 missed;
	__u64 first_train;
	__u64 next_train;
	struct train trains[TRAINS];
};

_Static_assert(sizeof(struct hop_delay) == 88 + 16 * TRAINS, "crates/agents/src/relay/measure.rs has it too");

struct hop_delay hops[HOPS] = {};

/* A packet that was queued. */
struct packet {
	__u64 queued;
	__u32 segments;
	__u16 place;
	/* The driver has it. */
	__u16 started;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PACKETS);
	__type(key, __u64);
	__type(value, struct packet);
} packets SEC(".maps");

static __always_inline struct hop_delay *at(__u32 place)
{
	return &hops[place & (HOPS - 1)];
}

static __always_inline int place_of(struct net_device *dev)
{
	__u32 ifindex = dev->ifindex;
	int i;

	for (i = 0; i < HOPS; i++) {
		if (!hops[i].ifindex)
			break;
		if (hops[i].ifindex == ifindex)
			return dev->nd_net.net->net_cookie == netns ? i : -1;
	}
	return -1;
}

/*
 * Fails while the other holder does not go on: it may be what this processor was interrupted in. A function that the verifier looks at once, as
 * on_done: what follows would be looked at anew for every try.
 */
__noinline int lock(__u32 place)
{
	struct hop_delay *hop = at(place);
	int i;

	for (i = 0; i < TRIES; i++)
		if (!__sync_val_compare_and_swap(&hop->lock, 0, 1))
			return 1;
	return 0;
}

static __always_inline void unlock(struct hop_delay *hop)
{
	__sync_lock_test_and_set(&hop->lock, 0);
}

static __always_inline __u32 segments_of(struct sk_buff *skb)
{
	/* skb_shinfo(): `end` is an offset where pointers have 64 bits. */
	struct skb_shared_info *info = (void *)(skb->head + skb->end);
	__u16 segments = BPF_CORE_READ(info, gso_segs);

	return segments ? segments : 1;
}

static __always_inline __u64 average(__u64 kept, __u64 sample)
{
	return (3 * kept + sample) / 4;
}

/*
 * The driver is done with a packet. HopDelay::on_done, a segment at a time. Where a driver hands packets on at once, what takes them time is a
 * queueing discipline that shapes, and a packet that has waited for none shows its credit alone. Then T falls by a little, and stands where packets
 * begin to wait.
 */
__noinline int on_done(__u32 place, __u64 now, __u64 queued, __u32 segments, int handed_on)
{
	struct hop_delay *hop = at(place);
	__u64 head, each, wait;
	int shows_service;
	__u32 i;

	__sync_fetch_and_add(&hop->waiting, -(__s64)segments);
	__sync_fetch_and_add(&hop->done, segments);
	if (!segments || !lock(place)) {
		__sync_fetch_and_add(&hop->missed, 1);
		return 0;
	}
	head = queued > hop->last ? queued : hop->last;
	/* Another processor's completion may be a moment ahead. */
	if (head > now)
		head = now;
	each = (now - head) / segments;
	wait = head > queued ? head - queued : 0;
	shows_service = !handed_on || queued < hop->last;
	for (i = 0; i < AVERAGED && i < segments; i++) {
		__u64 done = head + (i + 1) * each;
		int rested = !hop->last || done >= hop->last + IDLE;

		hop->queueing = rested ? wait : average(hop->queueing, wait);
		if (shows_service)
			hop->service = hop->last && (hop->service || !handed_on) ? average(hop->service, each) : each;
		else if (each < hop->service)
			hop->service -= hop->service >> CREDIT_SHIFT;
		hop->last = done;
		wait += each;
	}
	hop->last = now;
	unlock(hop);
	return 0;
}

static __always_inline void on_dropped(struct hop_delay *hop, __u32 segments)
{
	__sync_fetch_and_add(&hop->waiting, -(__s64)segments);
	__sync_fetch_and_add(&hop->dropped, segments);
}

/* A packet's segments go on in its place. */
static __always_inline void on_segmented(__u32 place, __u64 queued, __u32 segments)
{
	struct hop_delay *hop = at(place);
	struct train *train;

	if (!lock(place)) {
		on_dropped(hop, segments);
		return;
	}
	if (hop->next_train - hop->first_train < TRAINS) {
		train = &hop->trains[hop->next_train++ % TRAINS];
		train->queued = queued;
		train->left = segments;
		segments = 0;
	}
	unlock(hop);
	if (segments)
		on_dropped(hop, segments);
}

/* When the packet was queued that the driver gets a segment of now; zero if there is none. */
static __always_inline __u64 take_segment(__u32 place, __u64 now, __u32 segments)
{
	struct hop_delay *hop = at(place);
	__u64 queued = 0, lost = 0;
	struct train *train;
	int i;

	if (hop->first_train == hop->next_train || !lock(place))
		return 0;
	for (i = 0; i < TRAINS && hop->first_train != hop->next_train; i++) {
		train = &hop->trains[hop->first_train % TRAINS];
		if (train->queued + FORGOTTEN < now) {
			lost += train->left;
			hop->first_train++;
			continue;
		}
		queued = train->queued;
		train->left = train->left > segments ? train->left - segments : 0;
		if (!train->left)
			hop->first_train++;
		break;
	}
	unlock(hop);
	if (lost)
		on_dropped(hop, lost);
	return queued;
}

/* A segment was dropped in the queue: one of the newest. */
static __always_inline void drop_segment(__u32 place)
{
	struct hop_delay *hop = at(place);
	struct train *train;

	if (hop->first_train == hop->next_train || !lock(place))
		return;
	if (hop->first_train != hop->next_train) {
		train = &hop->trains[(hop->next_train - 1) % TRAINS];
		if (train->left)
			train->left--;
		if (!train->left)
			hop->next_train--;
		on_dropped(hop, 1);
	}
	unlock(hop);
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(hop_delay_queued, struct sk_buff *skb)
{
	struct packet packet = {}, *before;
	__u64 key = (__u64)skb;
	int place = place_of(skb->dev);

	if (place < 0)
		return 0;
	before = bpf_map_lookup_elem(&packets, &key);
	if (before) {
		/* It comes through an interface above this one, or was lost track of. */
		if (before->started)
			on_done(before->place, bpf_ktime_get_ns(), before->queued, before->segments, 1);
		else
			on_dropped(at(before->place), before->segments);
	}
	packet.queued = bpf_ktime_get_ns();
	packet.segments = segments_of(skb);
	packet.place = place;
	if (bpf_map_update_elem(&packets, &key, &packet, BPF_ANY))
		return 0;
	if (at(place)->waiting <= 0)
		at(place)->busy = packet.queued;
	__sync_fetch_and_add(&at(place)->waiting, packet.segments);
	return 0;
}

static __always_inline int on_started(struct sk_buff *skb, struct net_device *dev)
{
	struct packet *known, packet = {};
	int place = place_of(dev);
	__u64 key = (__u64)skb;

	if (place < 0)
		return 0;
	known = bpf_map_lookup_elem(&packets, &key);
	if (known) {
		known->started = 1;
		return 0;
	}
	packet.segments = segments_of(skb);
	packet.queued = take_segment(place, bpf_ktime_get_ns(), packet.segments);
	packet.place = place;
	packet.started = 1;
	if (packet.queued)
		bpf_map_update_elem(&packets, &key, &packet, BPF_ANY);
	return 0;
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(hop_delay_started, struct sk_buff *skb, struct net_device *dev)
{
	return on_started(skb, dev);
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(hop_delay_started_too, struct sk_buff *skb, struct net_device *dev)
{
	return on_started(skb, dev);
}

/* A packet that the driver had is done with. */
static __always_inline int finish(struct sk_buff *skb, int handed_on)
{
	__u64 key = (__u64)skb;
	struct packet *known = bpf_map_lookup_elem(&packets, &key), packet;

	/* What was handed on has been the driver's, though that may have been missed: a program does not interrupt itself. */
	if (!known || !(known->started || handed_on))
		return 0;
	packet = *known;
	bpf_map_delete_elem(&packets, &key);
	on_done(packet.place, bpf_ktime_get_ns(), packet.queued, packet.segments, handed_on);
	return 1;
}

SEC("tp_btf/netif_rx")
int BPF_PROG(hop_delay_handed_on, struct sk_buff *skb)
{
	finish(skb, 1);
	return 0;
}

SEC("tp_btf/netif_rx")
int BPF_PROG(hop_delay_handed_on_too, struct sk_buff *skb)
{
	finish(skb, 1);
	return 0;
}

static __always_inline int on_consumed(struct sk_buff *skb)
{
	__u64 key = (__u64)skb;
	struct packet *known, packet;

	if (finish(skb, 0))
		return 0;
	known = bpf_map_lookup_elem(&packets, &key);
	if (!known)
		return 0;
	/* Before the driver had it: others go in its place. */
	packet = *known;
	bpf_map_delete_elem(&packets, &key);
	on_segmented(packet.place, packet.queued, packet.segments);
	return 0;
}

SEC("tp_btf/consume_skb")
int BPF_PROG(hop_delay_consumed, struct sk_buff *skb)
{
	return on_consumed(skb);
}

SEC("tp_btf/consume_skb")
int BPF_PROG(hop_delay_consumed_too, struct sk_buff *skb)
{
	return on_consumed(skb);
}

/* True if it was known. */
static __always_inline int on_freed(struct sk_buff *skb, enum skb_drop_reason reason, int *by_queue)
{
	__u64 key = (__u64)skb;
	struct packet *known, packet;

	if (finish(skb, 0))
		return 1;
	*by_queue = bpf_core_enum_value_exists(enum skb_drop_reason, SKB_DROP_REASON_QDISC_DROP) &&
		   reason == bpf_core_enum_value(enum skb_drop_reason, SKB_DROP_REASON_QDISC_DROP);
	known = bpf_map_lookup_elem(&packets, &key);
	if (!known)
		return 0;
	packet = *known;
	bpf_map_delete_elem(&packets, &key);
	/* TBF drops a packet that it has segmented by itself if no segment found room: they are dropped one by one. */
	if (packet.segments > 1 && !*by_queue)
		on_segmented(packet.place, packet.queued, packet.segments);
	else
		on_dropped(at(packet.place), packet.segments);
	return 1;
}

/* Before its twin, which would leave nothing of a packet to tell it from a segment that nobody knows. */
SEC("tp_btf/kfree_skb")
int BPF_PROG(hop_delay_freed, struct sk_buff *skb, void *location, enum skb_drop_reason reason)
{
	int place, by_queue = 0;

	if (on_freed(skb, reason, &by_queue) || !by_queue)
		return 0;
	place = place_of(skb->dev);
	if (place >= 0)
		drop_segment(place);
	return 0;
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(hop_delay_freed_too, struct sk_buff *skb, void *location, enum skb_drop_reason reason)
{
	int by_queue = 0;

	on_freed(skb, reason, &by_queue);
	return 0;
}

/* For tests: one completion at the first place. */
struct completion {
	__u64 now;
	__u64 queued;
	__u64 segments;
	__u64 handed_on;
};

SEC("syscall")
int hop_delay_complete(struct completion *completion)
{
	on_done(0, completion->now, completion->queued, completion->segments, completion->handed_on);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
