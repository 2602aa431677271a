// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A relay of ATP: at an interface's egress it writes the node's own delay D into datagrams that carry a smaller one.
 *
 * A datagram is ours if it is UDP, from or to one of `ports`, and its payload begins with version 1; D stands at offset 4 of the payload,
 * in microseconds (docs/reference/atp-header.md). The rule in Rust is `lasthop_wire::relay`, which this program is tested against.
 *
 * Packets that are to be segmented later (GSO) hold several datagrams behind one UDP header: each is stamped. The first fragment of a
 * datagram is stamped, the others hold no header. The UDP checksum is mended by the difference (RFC 1624); the kernel's helper leaves it alone
 * where the device, or the kernel behind this hook, has still to compute it (CHECKSUM_PARTIAL), and where it is zero: none.
 *
 * If the agent wants so, packets of ECN-capable transports are marked (CE) while D is above a threshold.
 *
 * D holds until the time that the agent sets ever anew. After that nothing is written: an agent that dies or stands still stamps nobody.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <stddef.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Let other programs on the hook, and the stack, go on with the packet. */
#define PASS (-1)
#define NOWHERE 0

#define HOPS 16
#define PORTS 8
/* IEEE 802.1ad allows two tags. */
#define TAGS 2
/* As many IPv6 extension headers as lasthop_wire::ip looks through. */
#define EXTENSIONS 4
/* UDP_MAX_SEGMENTS of the kernel. */
#define SEGMENTS 128
#define FRAGMENT_OFFSET 0x1fff
#define FRAGMENT_OFFSET6 0xfff8
#define MORE_FRAGMENTS 0x2000
#define HOP_BY_HOP 0
#define ROUTING 43
#define FRAGMENT 44
#define DESTINATION_OPTIONS 60
#define ECN 3

#define VERSION 1
#define DELAY_AT 4
/* What must be there of a datagram's payload. */
#define NEEDED 8

/* Ports in network order; zero: none. */
const volatile __be16 ports[PORTS] = {};
/* D from which on packets are marked, in microseconds; zero: never. */
const volatile __u32 mark_above = 0;

/* An interface that packets leave through. */
struct relay_hop {
	/* Zero: this place and all behind it are free. */
	__u32 ifindex;
	/* Octets of link-layer header: 14, or 0 on devices that have none. */
	__u32 link_len;
	/* Until when D holds, ns of CLOCK_MONOTONIC. */
	__u64 until;
	/* D in microseconds. */
	__u64 delay;
	/* On a cache line of their own, which the agent does not write. Datagrams that are ours: with as large a D, those in which it was raised, and
	 * those that came while no D held. */
	__u64 kept __attribute__((aligned(64)));
	__u64 stamped;
	__u64 stale;
	/* Datagrams of our ports that do not begin as ours. */
	__u64 other;
	/* Packets marked CE. */
	__u64 marked;
};

_Static_assert(sizeof(struct relay_hop) == 128, "crates/agents/src/relay/stamper.rs has it too");

struct relay_hop hops[HOPS] = {};

/* Where the datagrams of a packet stand. */
struct found {
	__u32 udp;
	/* Behind the last octet of payload. */
	__u32 end;
	/* They have a checksum. */
	__u32 has_sum;
};

static __always_inline void count(__u64 *counter)
{
	__sync_fetch_and_add(counter, 1);
}

static __always_inline struct relay_hop *hop_of(__u32 ifindex)
{
	int i;

	for (i = 0; i < HOPS; i++) {
		if (hops[i].ifindex == ifindex)
			return &hops[i];
		if (!hops[i].ifindex)
			break;
	}
	return NULL;
}

static __always_inline int is_ours(__be16 port)
{
	int i;

	for (i = 0; i < PORTS; i++) {
		if (!ports[i])
			break;
		if (ports[i] == port)
			return 1;
	}
	return 0;
}

/* Where the IP header begins, and its version. Of the EtherType what stands in the frame counts, since a tag may be beside it. */
static __always_inline int network(struct __sk_buff *skb, __u32 link_len, __u32 *at, __u8 *version)
{
	__be16 type = 0;
	__u8 first;
	int i;

	*at = link_len;
	if (link_len) {
		__u32 type_at = ETH_HLEN - sizeof(type);

		for (i = 0; i <= TAGS; i++) {
			if (bpf_skb_load_bytes(skb, type_at, &type, sizeof(type)))
				return 0;
			if (type != bpf_htons(ETH_P_8021Q) && type != bpf_htons(ETH_P_8021AD))
				break;
			type_at += 4;
		}
		*at = type_at + sizeof(type);
	}
	if (bpf_skb_load_bytes(skb, *at, &first, sizeof(first)))
		return 0;
	*version = first >> 4;
	if (!link_len)
		return *version == 4 || *version == 6;
	return (type == bpf_htons(ETH_P_IP) && *version == 4) || (type == bpf_htons(ETH_P_IPV6) && *version == 6);
}

static __always_inline void mark4(struct __sk_buff *skb, __u32 at, const struct iphdr *ip, struct relay_hop *hop)
{
	__u8 marked = ip->tos | ECN;
	__be16 old, new;

	if (!(ip->tos & ECN) || marked == ip->tos)
		return;
	old = bpf_htons(*(__u8 *)ip << 8 | ip->tos);
	new = bpf_htons(*(__u8 *)ip << 8 | marked);
	/* First what may fail. */
	if (bpf_skb_store_bytes(skb, at + offsetof(struct iphdr, tos), &marked, sizeof(marked), 0))
		return;
	bpf_l3_csum_replace(skb, at + offsetof(struct iphdr, check), old, new, sizeof(old));
	count(&hop->marked);
}

static __always_inline void mark6(struct __sk_buff *skb, __u32 at, const struct ipv6hdr *ip, struct relay_hop *hop)
{
	/* The traffic class straddles the first two octets: ECN is bits 4 and 5 of the second. */
	__u8 second = ip->flow_lbl[0], marked = second | ECN << 4;

	if (!(second & ECN << 4) || marked == second)
		return;
	if (!bpf_skb_store_bytes(skb, at + 1, &marked, sizeof(marked), BPF_F_RECOMPUTE_CSUM))
		count(&hop->marked);
}

/* The UDP header of an IPv6 packet, extension headers looked through; NOWHERE if there is none. */
static __always_inline __u32 behind_extensions(struct __sk_buff *skb, __u32 at, __u8 next, int *is_fragment)
{
	struct {
		__u8 next;
		__u8 len;
		__be16 offset;
	} head;
	int i;

	for (i = 0; i <= EXTENSIONS; i++) {
		if (next == IPPROTO_UDP)
			return at;
		if (next != HOP_BY_HOP && next != ROUTING && next != DESTINATION_OPTIONS && next != FRAGMENT)
			return NOWHERE;
		if (bpf_skb_load_bytes(skb, at, &head, sizeof(head)))
			return NOWHERE;
		if (next == FRAGMENT) {
			/* Its second octet is reserved. What follows is of the first fragment alone. */
			*is_fragment = 1;
			if (head.next != IPPROTO_UDP || (head.offset & bpf_htons(FRAGMENT_OFFSET6)))
				return NOWHERE;
			return at + 8;
		}
		next = head.next;
		at += 8 * (head.len + 1);
	}
	return NOWHERE;
}

/* Finds the datagrams of a packet; marks it on the way, if it is to be. False if it has none that may be stamped. */
static __always_inline int find(struct __sk_buff *skb, struct relay_hop *hop, struct found *found, int *is_fragment)
{
	union {
		struct iphdr v4;
		struct ipv6hdr v6;
	} ip;
	__u32 at;
	__u8 version;
	int marks;

	if (!network(skb, hop->link_len, &at, &version))
		return 0;
	marks = mark_above && hop->delay >= mark_above && bpf_ktime_get_ns() < hop->until;
	*is_fragment = 0;
	if (version == 4) {
		if (bpf_skb_load_bytes(skb, at, &ip.v4, sizeof(ip.v4)) || ip.v4.ihl < 5)
			return 0;
		if (marks)
			mark4(skb, at, &ip.v4, hop);
		if (ip.v4.protocol != IPPROTO_UDP || (ip.v4.frag_off & bpf_htons(FRAGMENT_OFFSET)))
			return 0;
		*is_fragment = !!(ip.v4.frag_off & bpf_htons(MORE_FRAGMENTS));
		found->udp = at + ip.v4.ihl * 4;
		found->end = at + bpf_ntohs(ip.v4.tot_len);
	} else {
		if (bpf_skb_load_bytes(skb, at, &ip.v6, sizeof(ip.v6)))
			return 0;
		if (marks)
			mark6(skb, at, &ip.v6, hop);
		found->udp = behind_extensions(skb, at + sizeof(ip.v6), ip.v6.nexthdr, is_fragment);
		found->end = at + sizeof(ip.v6) + bpf_ntohs(ip.v6.payload_len);
		if (found->udp == NOWHERE)
			return 0;
	}
	/* A packet that ends before it says so is nobody's. */
	return found->end <= skb->len && found->udp + sizeof(struct udphdr) <= found->end;
}

/* What `plain` says of a packet that has to be looked at more closely, and of one that is not ours. Otherwise it has the place of the UDP header, then
 * that behind the payload, in 16 bits each, then whether there is a checksum. */
#define UNUSUAL 0
#define NOT_OURS 1
#define HAS_SUM (1ULL << 32)

/*
 * The datagram of a packet as nearly all are: IPv4 without options, no tag, no fragment, headers where no helper is needed. It costs what is not ours
 * least. Verified by itself (no inlining): its many ways would multiply with those of the loop over a train.
 */
__noinline __u64 plain(struct __sk_buff *skb, __u32 link_len)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct iphdr *ip = data;
	struct udphdr *udp;
	__u32 at = sizeof(*ip), end, len;

	if (link_len == ETH_HLEN) {
		struct ethhdr *eth = data;

		if ((void *)(eth + 1) > data_end || eth->h_proto != bpf_htons(ETH_P_IP))
			return UNUSUAL;
		ip = (void *)(eth + 1);
		at += ETH_HLEN;
	} else if (link_len) {
		return UNUSUAL;
	}
	udp = (void *)(ip + 1);
	if ((void *)(udp + 1) > data_end || *(__u8 *)ip != 0x45)
		return UNUSUAL;
	if (ip->protocol != IPPROTO_UDP)
		return NOT_OURS;
	if (ip->frag_off & bpf_htons(FRAGMENT_OFFSET | MORE_FRAGMENTS))
		return UNUSUAL;
	if (!is_ours(udp->source) && !is_ours(udp->dest))
		return NOT_OURS;
	len = bpf_ntohs(udp->len);
	end = at - sizeof(*ip) + bpf_ntohs(ip->tot_len);
	/* What contradicts itself is counted elsewhere; so is what does not fit into 16 bits. */
	if (end > skb->len || len < sizeof(*udp) || at + len > end || at + len > 0xffff)
		return UNUSUAL;
	return at | (__u64)(at + len) << 16 | (udp->check ? HAS_SUM : 0);
}

#define FRESH 1
#define WITH_SUM 2

/* One datagram. Its payload begins at `at`, behind the UDP header at `udp`. Verified by itself, as `plain`. */
__noinline int stamp(struct __sk_buff *skb, __u32 place, __u32 udp, __u32 at, __u32 flags)
{
	struct relay_hop *hop = &hops[place & (HOPS - 1)];
	struct {
		__u8 first;
		__u8 more[DELAY_AT - 1];
		__be32 delay;
	} head;
	__be32 own = bpf_htonl(hop->delay);

	if (bpf_skb_load_bytes(skb, at, &head, sizeof(head)) || head.first >> 4 != VERSION) {
		count(&hop->other);
		return 0;
	}
	if (!(flags & FRESH)) {
		count(&hop->stale);
		return 0;
	}
	if (bpf_ntohl(head.delay) >= bpf_ntohl(own)) {
		count(&hop->kept);
		return 0;
	}
	/* With a checksum of its own, the packet's sum is the same afterwards; without one, the kernel's has to follow (CHECKSUM_COMPLETE). */
	if (bpf_skb_store_bytes(skb, at + DELAY_AT, &own, sizeof(own), flags & WITH_SUM ? 0 : BPF_F_RECOMPUTE_CSUM))
		return 0;
	if (flags & WITH_SUM)
		bpf_l4_csum_replace(skb, udp + offsetof(struct udphdr, check), head.delay, own, BPF_F_MARK_MANGLED_0 | sizeof(own));
	count(&hop->stamped);
	return 0;
}

/* The datagrams of any packet: where they stand, as `find` has it, and whether they are of our ports. */
static __always_inline int closely(struct __sk_buff *skb, struct relay_hop *hop, struct found *found)
{
	struct udphdr udp;
	int is_fragment;
	__u32 len;

	if (!find(skb, hop, found, &is_fragment))
		return 0;
	if (bpf_skb_load_bytes(skb, found->udp, &udp, sizeof(udp)) || (!is_ours(udp.source) && !is_ours(udp.dest)))
		return 0;
	len = bpf_ntohs(udp.len);
	found->has_sum = udp.check;
	/* A whole datagram ends where its own length says, before any padding; of a first fragment all is payload. */
	if (!is_fragment) {
		if (len < sizeof(udp) || found->udp + len > found->end) {
			count(&hop->other);
			return 0;
		}
		found->end = found->udp + len;
	}
	return 1;
}

SEC("tcx/egress")
int relay_egress(struct __sk_buff *skb)
{
	struct relay_hop *hop = hop_of(skb->ifindex);
	struct found found = {};
	__u32 step, at, flags;
	__u64 seen;
	int i;

	if (!hop)
		return PASS;
	seen = mark_above ? UNUSUAL : plain(skb, hop->link_len);
	if (seen == NOT_OURS)
		return PASS;
	if (seen != UNUSUAL) {
		found.udp = seen & 0xffff;
		found.end = seen >> 16 & 0xffff;
		found.has_sum = !!(seen & HAS_SUM);
	} else if (!closely(skb, hop, &found)) {
		return PASS;
	}
	flags = (bpf_ktime_get_ns() < hop->until ? FRESH : 0) | (found.has_sum ? WITH_SUM : 0);
	at = found.udp + sizeof(struct udphdr);
	step = skb->gso_size;
	for (i = 0; i < SEGMENTS; i++) {
		if (at + NEEDED > found.end) {
			/* What is left of a train may be too short; so may be a datagram alone. */
			if (at < found.end || !i)
				count(&hop->other);
			break;
		}
		stamp(skb, hop - hops, found.udp, at, flags);
		if (!step)
			break;
		at += step;
	}
	return PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
